package stack

import "errors"

var (
	// ErrEmpty is returned when there is no element.
	ErrEmpty = errors.New("stack is empty")
	// ErrFull is returned when there is no room for another element.
	ErrFull = errors.New("stack is full")
)

// Stack holds texts, the last one on top.
type Stack struct {
	items []string
	size  int
}

// New returns an empty stack for at most size elements.
func New(size int) *Stack {
	return &Stack{size: size}
}

// Push puts an element on top.
func (s *Stack) Push(item string) error {
	if len(s.items) >= s.size {
		return ErrFull
	}
	s.items = append(s.items, item)
	return nil
}

// Pop removes the top element.
func (s *Stack) Pop() (string, error) {
	top, err := s.Peek()
	if err != nil {
		return "", err
	}
	s.items = s.items[:len(s.items)-1]
	return top, nil
}

// Peek returns the top element.
func (s *Stack) Peek() (string, error) {
	if len(s.items) == 0 {
		return "", ErrEmpty
	}
	return s.items[len(s.items)-1], nil
}

// Items returns all elements from the top to the bottom.
func (s *Stack) Items() []string {
	items := make([]string, 0, len(s.items))
	for i := len(s.items) - 1; i >= 0; i-- {
		items = append(items, s.items[i])
	}
	return items
}
