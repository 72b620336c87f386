package turnstile

import "fmt"

// Turnstile is locked, unlocked or broken.
type Turnstile struct {
	history []string
	coins   int
	passed  int
}

// New returns a locked turnstile.
func New() *Turnstile {
	return &Turnstile{history: []string{"locked"}}
}

// State returns the current state.
func (t *Turnstile) State() string {
	return t.history[len(t.history)-1]
}

// Coins returns the number of coins paid.
func (t *Turnstile) Coins() int {
	return t.coins
}

// Passed returns the number of people who passed.
func (t *Turnstile) Passed() int {
	return t.passed
}

// History returns all states so far.
func (t *Turnstile) History() []string {
	return append([]string(nil), t.history...)
}

func (t *Turnstile) enter(state string) {
	if state != t.State() {
		t.history = append(t.history, state)
	}
}

// Handle changes the state.
func (t *Turnstile) Handle(event string) error {
	broken := t.State() == "broken"
	switch {
	case event == "fix" && broken:
		t.enter("locked")
	case event == "break" && !broken:
		t.enter("broken")
	case event == "coin" && !broken:
		t.coins++
		t.enter("unlocked")
	case event == "push" && !broken:
		if t.State() == "unlocked" {
			t.passed++
		}
		t.enter("locked")
	default:
		return fmt.Errorf("event %q in state %q", event, t.State())
	}
	return nil
}
