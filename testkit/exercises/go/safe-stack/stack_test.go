package stack

import (
	"errors"
	"reflect"
	"testing"
)

func filled(t *testing.T, size int, items ...string) *Stack {
	t.Helper()
	s := New(size)
	for _, item := range items {
		if err := s.Push(item); err != nil {
			t.Fatalf("Push(%q): %v", item, err)
		}
	}
	return s
}

func TestLastInFirstOut(t *testing.T) {
	s := filled(t, 3, "a", "b", "c")
	for _, want := range []string{"c", "b", "a"} {
		if got, err := s.Peek(); got != want || err != nil {
			t.Errorf("Peek() = %q, %v, want %q", got, err, want)
		}
		if got, err := s.Pop(); got != want || err != nil {
			t.Errorf("Pop() = %q, %v, want %q", got, err, want)
		}
	}
}

func TestEmpty(t *testing.T) {
	s := New(1)
	if _, err := s.Pop(); !errors.Is(err, ErrEmpty) {
		t.Errorf("Pop: %v", err)
	}
	if _, err := s.Peek(); !errors.Is(err, ErrEmpty) {
		t.Errorf("Peek: %v", err)
	}
	if len(s.Items()) != 0 {
		t.Errorf("Items() = %v", s.Items())
	}
}

func TestFull(t *testing.T) {
	s := filled(t, 2, "a", "b")
	if err := s.Push("c"); !errors.Is(err, ErrFull) {
		t.Errorf("Push: %v", err)
	}
	if got, want := s.Items(), []string{"b", "a"}; !reflect.DeepEqual(got, want) {
		t.Errorf("Items() = %v, want %v", got, want)
	}
	if err := New(0).Push("a"); !errors.Is(err, ErrFull) {
		t.Errorf("Push to a stack of size 0: %v", err)
	}
}

func TestItemsAreACopy(t *testing.T) {
	s := filled(t, 2, "a", "b")
	s.Items()[0] = "changed"
	if got, _ := s.Peek(); got != "b" {
		t.Errorf("Peek() = %q, want b", got)
	}
}
