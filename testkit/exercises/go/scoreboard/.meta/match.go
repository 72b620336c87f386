package scoreboard

import (
	"fmt"
	"regexp"
	"strconv"
)

var form = regexp.MustCompile(`^(\S.*?) (\d+):(\d+) (.*\S)$`)

// Match is the result of a match.
type Match struct {
	Home, Away           string
	HomeGoals, AwayGoals int
}

// ParseMatch reads a result.
func ParseMatch(line string) (Match, error) {
	parts := form.FindStringSubmatch(line)
	if parts == nil {
		return Match{}, fmt.Errorf("not a result: %q", line)
	}
	home, err := strconv.Atoi(parts[2])
	if err != nil {
		return Match{}, err
	}
	away, err := strconv.Atoi(parts[3])
	return Match{parts[1], parts[4], home, away}, err
}
