package matrix

import (
	"reflect"
	"testing"
)

func build(t *testing.T, rows [][]int) Matrix {
	t.Helper()
	m, err := New(rows)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRowsOfDifferentLengths(t *testing.T) {
	if _, err := New([][]int{{1, 2}, {3}}); err == nil {
		t.Error("New accepts rows of different lengths")
	}
}

func TestTranspose(t *testing.T) {
	m := build(t, [][]int{{1, 2, 3}, {4, 5, 6}})
	if got, want := m.Transpose(), (Matrix{{1, 4}, {2, 5}, {3, 6}}); !reflect.DeepEqual(got, want) {
		t.Errorf("Transpose() = %v, want %v", got, want)
	}
	if want := (Matrix{{1, 2, 3}, {4, 5, 6}}); !reflect.DeepEqual(m, want) {
		t.Errorf("the matrix became %v", m)
	}
}

func TestMultiply(t *testing.T) {
	a := build(t, [][]int{{1, 2, 3}, {4, 5, 6}})
	b := build(t, [][]int{{1, 0}, {2, 1}, {0, 3}})
	got, err := a.Multiply(b)
	if want := (Matrix{{5, 11}, {14, 23}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Multiply = %v, %v, want %v", got, err, want)
	}
	if _, err := a.Multiply(a); err == nil {
		t.Error("Multiply accepts sizes that do not match")
	}
}

func TestPower(t *testing.T) {
	m := build(t, [][]int{{1, 1}, {1, 0}})
	cases := map[int]Matrix{
		0:  {{1, 0}, {0, 1}},
		1:  {{1, 1}, {1, 0}},
		10: {{89, 55}, {55, 34}},
	}
	for n, want := range cases {
		if got, err := m.Power(n); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Power(%d) = %v, %v, want %v", n, got, err, want)
		}
	}
	if _, err := m.Power(-1); err == nil {
		t.Error("Power accepts a negative number")
	}
	if _, err := build(t, [][]int{{1, 2}}).Power(2); err == nil {
		t.Error("Power accepts a matrix that is not square")
	}
}
