package wordcount

import (
	"reflect"
	"testing"
)

func TestCount(t *testing.T) {
	cases := []struct {
		name string
		text string
		want map[string]int
	}{
		{"single words", "one two one", map[string]int{"one": 2, "two": 1}},
		{"case", "Go GO go", map[string]int{"go": 3}},
		{"punctuation", "stop, go! go... (stop)", map[string]int{"stop": 2, "go": 2}},
		{"white space", "  a\tb\n\na ", map[string]int{"a": 2, "b": 1}},
		{"no spaces", "one,two:three", map[string]int{"one": 1, "two": 1, "three": 1}},
		{"apostrophes", "don't 'quote' me, don't", map[string]int{"don't": 2, "quote": 1, "me": 1}},
		{"lonely apostrophe", "a ' b", map[string]int{"a": 1, "b": 1}},
		{"digits", "7 of 9, 7", map[string]int{"7": 2, "of": 1, "9": 1}},
		{"other letters", "Über über", map[string]int{"über": 2}},
		{"nothing", " ,.! ", map[string]int{}},
	}
	for _, c := range cases {
		if got := Count(c.text); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: Count(%q) = %v, want %v", c.name, c.text, got, c.want)
		}
	}
}
