package brackets

// Check returns the position of the first faulty bracket, or -1.
func Check(text string) int {
	return 0
}
