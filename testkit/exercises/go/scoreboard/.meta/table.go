package scoreboard

import (
	"fmt"
	"sort"
)

type team struct {
	name         string
	points, diff int
}

func (t *team) play(own, other int) {
	t.diff += own - other
	if own > other {
		t.points += 3
	} else if own == other {
		t.points++
	}
}

// Table returns the lines of the league table.
func Table(matches []Match) []string {
	byName := map[string]*team{}
	teams := []*team{}
	find := func(name string) *team {
		if byName[name] == nil {
			byName[name] = &team{name: name}
			teams = append(teams, byName[name])
		}
		return byName[name]
	}
	for _, match := range matches {
		find(match.Home).play(match.HomeGoals, match.AwayGoals)
		find(match.Away).play(match.AwayGoals, match.HomeGoals)
	}
	sort.Slice(teams, func(i, j int) bool {
		a, b := teams[i], teams[j]
		if a.points != b.points {
			return a.points > b.points
		}
		if a.diff != b.diff {
			return a.diff > b.diff
		}
		return a.name < b.name
	})
	lines := []string{}
	rank := 0
	for i, t := range teams {
		if i == 0 || t.points != teams[i-1].points || t.diff != teams[i-1].diff {
			rank = i + 1
		}
		diff := "0"
		if t.diff != 0 {
			diff = fmt.Sprintf("%+d", t.diff)
		}
		lines = append(lines, fmt.Sprintf("%d. %s %d %s", rank, t.name, t.points, diff))
	}
	return lines
}
