package turnstile

// Turnstile is locked or unlocked.
type Turnstile struct {
	state string
}

// New returns a locked turnstile.
func New() *Turnstile {
	return &Turnstile{state: "locked"}
}

// State returns the current state.
func (t *Turnstile) State() string {
	return t.state
}

// Handle changes the state.
func (t *Turnstile) Handle(event string) error {
	if event == "coin" {
		t.state = "unlocked"
	}
	if event == "push" {
		t.state = "locked"
	}
	return nil
}
