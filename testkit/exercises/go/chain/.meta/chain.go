package chain

import (
	"errors"
	"strconv"
	"strings"
)

type node struct {
	value int
	next  *node
}

// Chain is a singly linked list.
type Chain struct {
	first *node
	last  *node
}

// Append adds a value at the end.
func (c *Chain) Append(value int) {
	n := &node{value: value}
	if c.first == nil {
		c.first = n
	} else {
		c.last.next = n
	}
	c.last = n
}

// Values returns all elements.
func (c *Chain) Values() []int {
	values := []int{}
	for n := c.first; n != nil; n = n.next {
		values = append(values, n.value)
	}
	return values
}

// Reverse reverses the chain in place.
func (c *Chain) Reverse() {
	var before *node
	for n := c.first; n != nil; {
		n.next, before, n = before, n, n.next
	}
	c.first, c.last = c.last, c.first
}

// Remove removes all elements with a value and returns their number.
func (c *Chain) Remove(value int) int {
	removed := 0
	kept := Chain{}
	for n := c.first; n != nil; n = n.next {
		if n.value == value {
			removed++
		} else {
			kept.Append(n.value)
		}
	}
	*c = kept
	return removed
}

// Insert puts a value before the element at an index.
func (c *Chain) Insert(index, value int) error {
	values := c.Values()
	if index < 0 || index > len(values) {
		return errors.New("index out of range")
	}
	changed := Chain{}
	for _, v := range values[:index] {
		changed.Append(v)
	}
	changed.Append(value)
	for _, v := range values[index:] {
		changed.Append(v)
	}
	*c = changed
	return nil
}

// String returns the elements with arrows between them.
func (c *Chain) String() string {
	texts := []string{}
	for _, value := range c.Values() {
		texts = append(texts, strconv.Itoa(value))
	}
	if len(texts) == 0 {
		return "empty"
	}
	return strings.Join(texts, " -> ")
}
