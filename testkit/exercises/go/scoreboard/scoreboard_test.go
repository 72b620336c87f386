package scoreboard

import (
	"reflect"
	"testing"
)

func TestParseMatch(t *testing.T) {
	cases := map[string]Match{
		"Lions 3:1 Bears":       {"Lions", "Bears", 3, 1},
		"Red Foxes 10:0 Sea XI": {"Red Foxes", "Sea XI", 10, 0},
	}
	for line, want := range cases {
		if got, err := ParseMatch(line); err != nil || got != want {
			t.Errorf("ParseMatch(%q) = %v, %v, want %v", line, got, err, want)
		}
	}
	for _, line := range []string{"", "Lions 3:1", "3:1 Bears", "Lions Bears", "Lions a:1 Bears", "Lions 3-1 Bears", "Lions 3: Bears"} {
		if got, err := ParseMatch(line); err == nil {
			t.Errorf("ParseMatch(%q) = %v", line, got)
		}
	}
}

func expect(t *testing.T, matches []Match, want ...string) {
	t.Helper()
	if got := Table(matches); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("Table = %q, want %q", got, want)
	}
}

func TestPointsDecide(t *testing.T) {
	expect(t, []Match{{"Lions", "Bears", 3, 1}, {"Bears", "Lions", 2, 2}}, "1. Lions 4 +2", "2. Bears 1 -2")
}

func TestThenDifferenceAndName(t *testing.T) {
	matches := []Match{{"Bears", "Ants", 1, 0}, {"Lions", "Cats", 5, 0}}
	expect(t, matches, "1. Lions 3 +5", "2. Bears 3 +1", "3. Ants 0 -1", "4. Cats 0 -5")
}

func TestSharedRanks(t *testing.T) {
	matches := []Match{{"Owls", "Ants", 1, 1}, {"Lions", "Bears", 2, 1}}
	expect(t, matches, "1. Lions 3 +1", "2. Ants 1 0", "2. Owls 1 0", "4. Bears 0 -1")
}

func TestNoMatches(t *testing.T) {
	expect(t, nil)
}
