package wordcount

import "strings"

// Count returns how often each word occurs in the text.
func Count(text string) map[string]int {
	counts := map[string]int{}
	for _, word := range strings.Split(text, " ") {
		counts[word]++
	}
	return counts
}
