package version

import "testing"

func TestCompare(t *testing.T) {
	cases := []struct {
		a, b string
		want int
	}{
		{"1.2.3", "1.2.3", 0},
		{"1.9", "1.10", -1},
		{"2.0", "10.0", -1},
		{"1.2", "1.2.0", 0},
		{"1", "1.0.1", -1},
		{"v1.3", "1.2", 1},
		{"v2", "2.0", 0},
		{"1.0-rc1", "1.0", -1},
		{"1.0-beta", "1.0-rc1", -1},
		{"1.0.0-rc1", "1.0-rc1", 0},
		{"1.1-rc1", "1.0", 1},
	}
	for _, c := range cases {
		if got := Compare(c.a, c.b); got != c.want {
			t.Errorf("Compare(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := Compare(c.b, c.a); got != -c.want {
			t.Errorf("Compare(%q, %q) = %d, want %d", c.b, c.a, got, -c.want)
		}
	}
}

func TestLatest(t *testing.T) {
	cases := []struct {
		versions []string
		want     string
	}{
		{[]string{"1.9", "v1.10", "1.2"}, "v1.10"},
		{[]string{"2.0-rc1", "1.9"}, "2.0-rc1"},
		{[]string{"2.0-rc1", "2.0"}, "2.0"},
		{[]string{"0.1"}, "0.1"},
		{nil, ""},
	}
	for _, c := range cases {
		if got := Latest(c.versions); got != c.want {
			t.Errorf("Latest(%v) = %q, want %q", c.versions, got, c.want)
		}
	}
}
