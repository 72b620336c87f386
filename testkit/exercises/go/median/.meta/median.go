package median

import (
	"errors"
	"sort"
)

// ErrNoValues is returned for an empty list.
var ErrNoValues = errors.New("no values")

// Median returns the value in the middle.
func Median(values []float64) (float64, error) {
	if len(values) == 0 {
		return 0, ErrNoValues
	}
	sorted := append([]float64(nil), values...)
	sort.Float64s(sorted)
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle], nil
	}
	return (sorted[middle-1] + sorted[middle]) / 2, nil
}

// Mode returns the most frequent value.
func Mode(values []float64) (float64, error) {
	if len(values) == 0 {
		return 0, ErrNoValues
	}
	counts := map[float64]int{}
	for _, value := range values {
		counts[value]++
	}
	mode, most := 0.0, 0
	for value, count := range counts {
		if count > most || count == most && value < mode {
			mode, most = value, count
		}
	}
	return mode, nil
}
