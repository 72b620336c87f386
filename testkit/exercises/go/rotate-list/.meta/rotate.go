package rotate

// Rotate moves every element a number of places to the right.
func Rotate(list []int, steps int) []int {
	result := make([]int, len(list))
	for i, element := range list {
		to := ((i+steps)%len(list) + len(list)) % len(list)
		result[to] = element
	}
	return result
}
