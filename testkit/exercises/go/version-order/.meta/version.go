package version

import (
	"strconv"
	"strings"
)

func split(v string) ([]string, string) {
	v = strings.TrimPrefix(v, "v")
	pre := ""
	if i := strings.Index(v, "-"); i >= 0 {
		v, pre = v[:i], v[i+1:]
	}
	return strings.Split(v, "."), pre
}

func part(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	n, _ := strconv.Atoi(parts[i])
	return n
}

// Compare returns -1 if a is older than b, 1 if it is newer and 0 if they are equal.
func Compare(a, b string) int {
	partsA, preA := split(a)
	partsB, preB := split(b)
	for i := 0; i < len(partsA) || i < len(partsB); i++ {
		x, y := part(partsA, i), part(partsB, i)
		if x < y {
			return -1
		}
		if x > y {
			return 1
		}
	}
	switch {
	case preA == preB:
		return 0
	case preA == "":
		return 1
	case preB == "":
		return -1
	}
	return strings.Compare(preA, preB)
}

// Latest returns the newest version.
func Latest(versions []string) string {
	latest := ""
	for i, v := range versions {
		if i == 0 || Compare(v, latest) > 0 {
			latest = v
		}
	}
	return latest
}
