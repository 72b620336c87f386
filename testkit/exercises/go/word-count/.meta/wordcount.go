package wordcount

import (
	"strings"
	"unicode"
)

// Count returns how often each word occurs in the text.
func Count(text string) map[string]int {
	counts := map[string]int{}
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\''
	})
	for _, word := range words {
		word = strings.Trim(word, "'")
		if word != "" {
			counts[word]++
		}
	}
	return counts
}
