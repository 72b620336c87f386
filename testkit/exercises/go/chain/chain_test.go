package chain

import (
	"reflect"
	"testing"
)

func of(values ...int) *Chain {
	c := &Chain{}
	for _, value := range values {
		c.Append(value)
	}
	return c
}

func expect(t *testing.T, c *Chain, want ...int) {
	t.Helper()
	if got := c.Values(); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReverse(t *testing.T) {
	c := of(1, 2, 3)
	c.Reverse()
	expect(t, c, 3, 2, 1)
	c.Append(0)
	expect(t, c, 3, 2, 1, 0)
	c = of()
	c.Reverse()
	expect(t, c)
	c.Append(5)
	expect(t, c, 5)
}

func TestRemove(t *testing.T) {
	c := of(1, 2, 1, 3, 1)
	if got := c.Remove(1); got != 3 {
		t.Errorf("Remove(1) = %d, want 3", got)
	}
	expect(t, c, 2, 3)
	c.Append(4)
	expect(t, c, 2, 3, 4)
	if got := c.Remove(9); got != 0 {
		t.Errorf("Remove(9) = %d, want 0", got)
	}
	c = of(7, 7)
	c.Remove(7)
	expect(t, c)
	c.Append(8)
	expect(t, c, 8)
}

func TestInsert(t *testing.T) {
	c := of()
	for _, step := range [][2]int{{0, 2}, {0, 1}, {2, 4}, {2, 3}} {
		if err := c.Insert(step[0], step[1]); err != nil {
			t.Errorf("Insert%v: %v", step, err)
		}
	}
	expect(t, c, 1, 2, 3, 4)
	if c.Insert(-1, 9) == nil || c.Insert(5, 9) == nil {
		t.Error("Insert accepts an index outside the chain")
	}
	expect(t, c, 1, 2, 3, 4)
	if err := c.Insert(4, 5); err != nil {
		t.Error(err)
	}
	c.Append(6)
	expect(t, c, 1, 2, 3, 4, 5, 6)
}

func TestString(t *testing.T) {
	if got := of(1, -2, 3).String(); got != "1 -> -2 -> 3" {
		t.Errorf("String() = %q", got)
	}
	if got := of().String(); got != "empty" {
		t.Errorf("String() = %q", got)
	}
}
