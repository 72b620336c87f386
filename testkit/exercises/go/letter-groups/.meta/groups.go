package groups

import (
	"sort"
	"strings"
)

// Groups collects the words that consist of the same letters.
func Groups(words []string) [][]string {
	found := map[string][]string{}
	seen := map[string]bool{}
	var order []string
	for _, word := range words {
		lower := strings.ToLower(word)
		if seen[lower] {
			continue
		}
		seen[lower] = true
		letters := strings.Split(lower, "")
		sort.Strings(letters)
		key := strings.Join(letters, "")
		if found[key] == nil {
			order = append(order, key)
		}
		found[key] = append(found[key], word)
	}
	result := [][]string{}
	for _, key := range order {
		if len(found[key]) > 1 {
			result = append(result, found[key])
		}
	}
	return result
}
