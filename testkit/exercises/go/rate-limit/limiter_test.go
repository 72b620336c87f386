package limiter

import "testing"

func allow(t *testing.T, l *Limiter, user string, now int, want bool) {
	t.Helper()
	if got := l.Allow(user, now); got != want {
		t.Errorf("Allow(%q, %d) = %v, want %v", user, now, got, want)
	}
}

func TestEventsAreForgotten(t *testing.T) {
	l := New(2, 60)
	allow(t, l, "ann", 10, true)
	allow(t, l, "ann", 20, true)
	allow(t, l, "ann", 69, false)
	allow(t, l, "ann", 70, true)
	allow(t, l, "ann", 79, false)
	allow(t, l, "ann", 80, true)
}

func TestUsersAreSeparate(t *testing.T) {
	l := New(1, 10)
	allow(t, l, "ann", 0, true)
	allow(t, l, "bob", 0, true)
	allow(t, l, "ann", 1, false)
}

func TestRefusedEventsAreNotCounted(t *testing.T) {
	l := New(1, 10)
	allow(t, l, "ann", 0, true)
	for now := 1; now < 10; now++ {
		allow(t, l, "ann", now, false)
	}
	allow(t, l, "ann", 10, true)
}

func TestRemaining(t *testing.T) {
	l := New(3, 10)
	for i, want := range []int{3, 2, 1, 0} {
		if got := l.Remaining("ann", i); got != want {
			t.Errorf("Remaining at %d = %d, want %d", i, got, want)
		}
		l.Allow("ann", i)
	}
	if got := l.Remaining("ann", 11); got != 2 {
		t.Errorf("Remaining at 11 = %d, want 2", got)
	}
}

func TestWait(t *testing.T) {
	l := New(2, 60)
	if got := l.Wait("ann", 0); got != 0 {
		t.Errorf("Wait for a new user = %d", got)
	}
	l.Allow("ann", 10)
	l.Allow("ann", 30)
	if got := l.Wait("ann", 40); got != 30 {
		t.Errorf("Wait at 40 = %d, want 30", got)
	}
	if got := l.Wait("ann", 70); got != 0 {
		t.Errorf("Wait at 70 = %d, want 0", got)
	}
}

func TestNothingIsAllowed(t *testing.T) {
	l := New(0, 60)
	allow(t, l, "ann", 0, false)
	if got := l.Wait("ann", 0); got != -1 {
		t.Errorf("Wait = %d, want -1", got)
	}
}
