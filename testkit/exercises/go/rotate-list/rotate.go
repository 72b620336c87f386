package rotate

// Rotate moves every element a number of places to the right.
func Rotate(list []int, steps int) []int {
	return append(list[steps:], list[:steps]...)
}
