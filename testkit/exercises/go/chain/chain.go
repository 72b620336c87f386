package chain

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
