package ledger

import "strings"

// Entry is one line of a ledger.
type Entry struct {
	Date     string
	Category string
	Cents    int
}

// ParseEntry reads one line.
func ParseEntry(line string) (Entry, error) {
	parts := strings.Split(line, " ")
	return Entry{Date: parts[0], Category: parts[1]}, nil
}
