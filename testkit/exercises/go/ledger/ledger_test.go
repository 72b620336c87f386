package ledger

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseEntry(t *testing.T) {
	cases := map[string]Entry{
		"2024-05-01 food 12.50":      {"2024-05-01", "food", 1250},
		" 2024-05-02   rent -800.05": {"2024-05-02", "rent", -80005},
		"2024-05-03 tip -0.50":       {"2024-05-03", "tip", -50},
	}
	for line, want := range cases {
		if got, err := ParseEntry(line); err != nil || got != want {
			t.Errorf("ParseEntry(%q) = %v, %v, want %v", line, got, err, want)
		}
	}
}

func TestFaultyEntries(t *testing.T) {
	for _, line := range []string{"", "2024-05-01 food", "a b 1.00 c", "a b 1", "a b 1.5", "a b x.00", "a b 1.234", "a b .50"} {
		if entry, err := ParseEntry(line); err == nil {
			t.Errorf("ParseEntry(%q) = %v", line, entry)
		}
	}
}

func TestRead(t *testing.T) {
	got, err := Read("# May\n\n1 food 1.00\n2 rent 2.00\n")
	want := []Entry{{"1", "food", 100}, {"2", "rent", 200}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Read = %v, %v, want %v", got, err, want)
	}
	_, err = Read("# May\n1 food 1.00\n2 rent\n")
	if err == nil || !strings.HasPrefix(err.Error(), "line 3: ") {
		t.Errorf("the error is %v", err)
	}
}

func TestTotals(t *testing.T) {
	entries := []Entry{{"1", "rent", -80005}, {"2", "food", 1250}, {"3", "food", 75}, {"4", "tip", -50}}
	want := []string{"food 13.25", "rent -800.05", "tip -0.50"}
	if got := Totals(entries); !reflect.DeepEqual(got, want) {
		t.Errorf("Totals = %q, want %q", got, want)
	}
	if got := Totals(nil); len(got) != 0 {
		t.Errorf("Totals(nil) = %q", got)
	}
}
