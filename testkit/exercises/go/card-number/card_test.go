package card

import (
	"strconv"
	"testing"
)

func TestValid(t *testing.T) {
	cases := map[string]bool{
		"4539 3195 0343 6467": true,
		"4539319503436467":    true,
		"8273 1232 7352 0569": false,
		"00":                  true,
		"59":                  true,
		"0":                   false,
		"":                    false,
		" 0":                  false,
		"059a":                false,
		"055-444-285":         false,
		" 59 ":                true,
		"91":                  true,
	}
	for number, want := range cases {
		if got := Valid(number); got != want {
			t.Errorf("Valid(%q) = %v, want %v", number, got, want)
		}
	}
}

func TestCheckDigit(t *testing.T) {
	cases := map[string]int{
		"453931950343646": 7,
		"5":               9,
		"0":               0,
		"":                -1,
		"12x":             -1,
	}
	for number, want := range cases {
		if got := CheckDigit(number); got != want {
			t.Errorf("CheckDigit(%q) = %d, want %d", number, got, want)
		}
	}
}

func TestCheckDigitMakesTheNumberValid(t *testing.T) {
	for n := 1; n < 2000; n += 7 {
		number := strconv.Itoa(n)
		digit := CheckDigit(number)
		if digit < 0 || digit > 9 || !Valid(number+strconv.Itoa(digit)) {
			t.Fatalf("CheckDigit(%q) = %d", number, digit)
		}
	}
}
