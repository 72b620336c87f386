package scoreboard

// Table returns the lines of the league table.
func Table(matches []Match) []string {
	lines := []string{}
	for _, match := range matches {
		lines = append(lines, match.Home, match.Away)
	}
	return lines
}
