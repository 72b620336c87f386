package version

import "strings"

// Compare returns -1 if a is older than b, 1 if it is newer and 0 if they are equal.
func Compare(a, b string) int {
	return strings.Compare(a, b)
}

// Latest returns the newest version.
func Latest(versions []string) string {
	latest := versions[0]
	for _, v := range versions {
		if Compare(v, latest) < 0 {
			latest = v
		}
	}
	return latest
}
