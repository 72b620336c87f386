package ledger

import "strings"

// Read reads a text with one entry per line.
func Read(text string) ([]Entry, error) {
	entries := []Entry{}
	for _, line := range strings.Split(text, "\n") {
		entry, err := ParseEntry(line)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// Totals returns the sum of each category.
func Totals(entries []Entry) []string {
	return nil
}
