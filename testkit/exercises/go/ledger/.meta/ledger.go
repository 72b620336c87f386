package ledger

import (
	"fmt"
	"sort"
	"strings"
)

// Read reads a text with one entry per line.
func Read(text string) ([]Entry, error) {
	entries := []Entry{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		entry, err := ParseEntry(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// Totals returns the sum of each category.
func Totals(entries []Entry) []string {
	sums := map[string]int{}
	for _, entry := range entries {
		sums[entry.Category] += entry.Cents
	}
	lines := []string{}
	for category, cents := range sums {
		sign := ""
		if cents < 0 {
			sign, cents = "-", -cents
		}
		lines = append(lines, fmt.Sprintf("%s %s%d.%02d", category, sign, cents/100, cents%100))
	}
	sort.Strings(lines)
	return lines
}
