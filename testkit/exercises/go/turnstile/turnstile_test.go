package turnstile

import (
	"reflect"
	"testing"
)

func handle(t *testing.T, turnstile *Turnstile, fails bool, events ...string) {
	t.Helper()
	for _, event := range events {
		if err := turnstile.Handle(event); (err != nil) != fails {
			t.Errorf("Handle(%q) = %v", event, err)
		}
	}
}

func expect(t *testing.T, turnstile *Turnstile, state string, coins, passed int) {
	t.Helper()
	if turnstile.State() != state || turnstile.Coins() != coins || turnstile.Passed() != passed {
		t.Errorf("got %s, %d coins, %d passed; want %s, %d, %d",
			turnstile.State(), turnstile.Coins(), turnstile.Passed(), state, coins, passed)
	}
}

func TestPayAndPass(t *testing.T) {
	turnstile := New()
	expect(t, turnstile, "locked", 0, 0)
	handle(t, turnstile, false, "coin")
	expect(t, turnstile, "unlocked", 1, 0)
	handle(t, turnstile, false, "push")
	expect(t, turnstile, "locked", 1, 1)
	handle(t, turnstile, false, "push")
	expect(t, turnstile, "locked", 1, 1)
}

func TestMoreCoins(t *testing.T) {
	turnstile := New()
	handle(t, turnstile, false, "coin", "coin", "coin", "push")
	expect(t, turnstile, "locked", 3, 1)
}

func TestBroken(t *testing.T) {
	turnstile := New()
	handle(t, turnstile, false, "coin", "break")
	handle(t, turnstile, true, "coin", "push", "break")
	expect(t, turnstile, "broken", 1, 0)
	handle(t, turnstile, false, "fix")
	expect(t, turnstile, "locked", 1, 0)
	handle(t, turnstile, true, "fix")
	expect(t, turnstile, "locked", 1, 0)
}

func TestUnknownEvent(t *testing.T) {
	turnstile := New()
	handle(t, turnstile, false, "coin")
	handle(t, turnstile, true, "kick", "")
	expect(t, turnstile, "unlocked", 1, 0)
}

func TestHistory(t *testing.T) {
	turnstile := New()
	handle(t, turnstile, false, "push", "coin", "coin", "push", "break", "fix")
	want := []string{"locked", "unlocked", "locked", "broken", "locked"}
	if got := turnstile.History(); !reflect.DeepEqual(got, want) {
		t.Errorf("History() = %v, want %v", got, want)
	}
}
