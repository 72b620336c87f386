package brackets

import "testing"

func TestCheck(t *testing.T) {
	cases := []struct {
		text string
		want int
	}{
		{"", -1},
		{"no brackets", -1},
		{"(a[b]{c})", -1},
		{"()()[]", -1},
		{"(", 0},
		{"a)", 1},
		{"(]", 1},
		{"([)]", 2},
		{"((a)", 0},
		{"(a)(b[c", 5},
		{"{[()]}]", 6},
		{"ä(", 2},
		{`(")")`, -1},
		{`"("`, -1},
		{`("a\")")`, -1},
		{`"a\\")`, 5},
		{`("]" ]`, 5},
	}
	for _, c := range cases {
		if got := Check(c.text); got != c.want {
			t.Errorf("Check(%q) = %d, want %d", c.text, got, c.want)
		}
	}
}
