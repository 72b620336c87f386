package ledger

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var amount = regexp.MustCompile(`^-?\d+\.\d\d$`)

// Entry is one line of a ledger.
type Entry struct {
	Date     string
	Category string
	Cents    int
}

// ParseEntry reads one line.
func ParseEntry(line string) (Entry, error) {
	parts := strings.Fields(line)
	if len(parts) != 3 {
		return Entry{}, fmt.Errorf("%d parts instead of 3", len(parts))
	}
	if !amount.MatchString(parts[2]) {
		return Entry{}, fmt.Errorf("not an amount: %s", parts[2])
	}
	cents, err := strconv.Atoi(strings.Replace(parts[2], ".", "", 1))
	return Entry{Date: parts[0], Category: parts[1], Cents: cents}, err
}
