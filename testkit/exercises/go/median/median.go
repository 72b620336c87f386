package median

import (
	"errors"
	"sort"
)

// ErrNoValues is returned for an empty list.
var ErrNoValues = errors.New("no values")

// Median returns the value in the middle.
func Median(values []float64) (float64, error) {
	sort.Float64s(values)
	return values[len(values)/2], nil
}

// Mode returns the most frequent value.
func Mode(values []float64) (float64, error) {
	counts := map[float64]int{}
	for _, value := range values {
		counts[value]++
	}
	mode, most := 0.0, 0
	for value, count := range counts {
		if count > most {
			mode, most = value, count
		}
	}
	return mode, nil
}
