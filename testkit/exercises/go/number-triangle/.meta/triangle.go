package triangle

// Triangle returns the first rows of the triangle.
func Triangle(rows int) [][]int {
	result := [][]int{}
	for r := 0; r < rows; r++ {
		row := make([]int, r+1)
		row[0], row[r] = 1, 1
		for c := 1; c < r; c++ {
			row[c] = result[r-1][c-1] + result[r-1][c]
		}
		result = append(result, row)
	}
	return result
}

// Entry returns one number of the triangle.
func Entry(row, column int) int {
	if row < 0 || column < 0 || column > row {
		return 0
	}
	return Triangle(row + 1)[row][column]
}
