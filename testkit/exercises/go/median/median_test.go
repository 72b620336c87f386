package median

import (
	"errors"
	"reflect"
	"testing"
)

func TestMedian(t *testing.T) {
	cases := []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{5, 1, 3}, 3},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{-1, 1}, 0},
		{[]float64{7, 7, 7, 1}, 7},
	}
	for _, c := range cases {
		if got, err := Median(c.values); got != c.want || err != nil {
			t.Errorf("Median(%v) = %v, %v, want %v", c.values, got, err, c.want)
		}
	}
}

func TestMode(t *testing.T) {
	cases := []struct {
		values []float64
		want   float64
	}{
		{[]float64{1, 2, 2, 3}, 2},
		{[]float64{5, 4, 5, 4, 1}, 4},
		{[]float64{9, 8, 7, 6, 5, 4, 3, 2, 1}, 1},
		{[]float64{-3, -3, 0}, -3},
	}
	for _, c := range cases {
		for repeat := 0; repeat < 20; repeat++ {
			if got, err := Mode(c.values); got != c.want || err != nil {
				t.Fatalf("Mode(%v) = %v, %v, want %v", c.values, got, err, c.want)
			}
		}
	}
}

func TestNoValues(t *testing.T) {
	if _, err := Median(nil); !errors.Is(err, ErrNoValues) {
		t.Errorf("Median: %v", err)
	}
	if _, err := Mode([]float64{}); !errors.Is(err, ErrNoValues) {
		t.Errorf("Mode: %v", err)
	}
}

func TestTheArgumentIsNotChanged(t *testing.T) {
	values := []float64{3, 1, 2}
	if _, err := Median(values); err != nil {
		t.Fatal(err)
	}
	if want := []float64{3, 1, 2}; !reflect.DeepEqual(values, want) {
		t.Errorf("the argument became %v", values)
	}
}
