package triangle

import (
	"reflect"
	"testing"
)

func TestTriangle(t *testing.T) {
	want := [][]int{{1}, {1, 1}, {1, 2, 1}, {1, 3, 3, 1}, {1, 4, 6, 4, 1}}
	for rows := 1; rows <= 5; rows++ {
		if got := Triangle(rows); !reflect.DeepEqual(got, want[:rows]) {
			t.Errorf("Triangle(%d) = %v", rows, got)
		}
	}
}

func TestNoRows(t *testing.T) {
	for _, rows := range []int{0, -3} {
		if got := Triangle(rows); len(got) != 0 {
			t.Errorf("Triangle(%d) = %v", rows, got)
		}
	}
}

func TestEntry(t *testing.T) {
	cases := []struct{ row, column, want int }{
		{0, 0, 1}, {4, 2, 6}, {5, 5, 1}, {10, 3, 120}, {60, 30, 118264581564861424},
		{3, 4, 0}, {3, -1, 0}, {-1, 0, 0},
	}
	for _, c := range cases {
		if got := Entry(c.row, c.column); got != c.want {
			t.Errorf("Entry(%d, %d) = %d, want %d", c.row, c.column, got, c.want)
		}
	}
}
