package groups

import (
	"reflect"
	"testing"
)

func TestGroups(t *testing.T) {
	cases := []struct {
		name  string
		words []string
		want  [][]string
	}{
		{"a pair", []string{"listen", "hello", "silent"}, [][]string{{"listen", "silent"}}},
		{"order of the input", []string{"tea", "dog", "god", "eat", "ate"}, [][]string{{"tea", "eat", "ate"}, {"dog", "god"}}},
		{"case does not matter", []string{"Tea", "EAT"}, [][]string{{"Tea", "EAT"}}},
		{"the same word counts once", []string{"dog", "Dog", "dog"}, nil},
		{"first spelling", []string{"Dog", "dog", "god"}, [][]string{{"Dog", "god"}}},
		{"letters are counted", []string{"aab", "abb", "bab"}, [][]string{{"abb", "bab"}}},
		{"other letters", []string{"äb", "bÄ"}, [][]string{{"äb", "bÄ"}}},
		{"nothing", nil, nil},
	}
	for _, c := range cases {
		got := Groups(c.words)
		if len(got) == 0 && len(c.want) == 0 {
			continue
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: Groups(%q) = %q, want %q", c.name, c.words, got, c.want)
		}
	}
}
