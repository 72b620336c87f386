package rotate

import (
	"reflect"
	"testing"
)

func TestRotate(t *testing.T) {
	cases := []struct {
		list  []int
		steps int
		want  []int
	}{
		{[]int{1, 2, 3, 4, 5}, 1, []int{5, 1, 2, 3, 4}},
		{[]int{1, 2, 3, 4, 5}, 2, []int{4, 5, 1, 2, 3}},
		{[]int{1, 2, 3}, 0, []int{1, 2, 3}},
		{[]int{1, 2, 3}, 3, []int{1, 2, 3}},
		{[]int{1, 2, 3}, 7, []int{3, 1, 2}},
		{[]int{1, 2, 3}, -1, []int{2, 3, 1}},
		{[]int{1, 2, 3}, -8, []int{3, 1, 2}},
		{[]int{9}, 5, []int{9}},
		{[]int{}, 3, []int{}},
	}
	for _, c := range cases {
		if got := Rotate(c.list, c.steps); len(got) != len(c.want) || (len(got) > 0 && !reflect.DeepEqual(got, c.want)) {
			t.Errorf("Rotate(%v, %d) = %v, want %v", c.list, c.steps, got, c.want)
		}
	}
}

func TestTheArgumentIsNotChanged(t *testing.T) {
	backing := []int{1, 2, 3, 4, 5, 6}
	Rotate(backing[:3], 1)
	Rotate(backing[:3], -1)
	if want := []int{1, 2, 3, 4, 5, 6}; !reflect.DeepEqual(backing, want) {
		t.Errorf("the argument became %v", backing)
	}
}
