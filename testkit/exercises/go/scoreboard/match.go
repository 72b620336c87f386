package scoreboard

// Match is the result of a match.
type Match struct {
	Home, Away           string
	HomeGoals, AwayGoals int
}

// ParseMatch reads a result.
func ParseMatch(line string) (Match, error) {
	return Match{}, nil
}
