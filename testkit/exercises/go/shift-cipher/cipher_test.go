package cipher

import "testing"

func TestEncrypt(t *testing.T) {
	cases := []struct {
		text  string
		shift int
		want  string
	}{
		{"abc", 3, "def"},
		{"xyz", 3, "abc"},
		{"Hello, World!", 5, "Mjqqt, Btwqi!"},
		{"abc", 0, "abc"},
		{"abc", 26, "abc"},
		{"abc", 55, "def"},
		{"abc", -1, "zab"},
		{"ABC", -30, "WXY"},
		{"123 äöü é", 7, "123 äöü é"},
		{"", 4, ""},
	}
	for _, c := range cases {
		if got := Encrypt(c.text, c.shift); got != c.want {
			t.Errorf("Encrypt(%q, %d) = %q, want %q", c.text, c.shift, got, c.want)
		}
	}
}

func TestDecryptReversesEncrypt(t *testing.T) {
	text := "The quick brown fox jumps over the lazy dog. ZZ top"
	for shift := -60; shift <= 60; shift++ {
		if got := Decrypt(Encrypt(text, shift), shift); got != text {
			t.Fatalf("shift %d gives %q", shift, got)
		}
	}
}
