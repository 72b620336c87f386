package matrix

import "errors"

// Matrix is a list of rows.
type Matrix [][]int

// New returns a matrix with these rows.
func New(rows [][]int) (Matrix, error) {
	for _, row := range rows {
		if len(row) != len(rows[0]) {
			return nil, errors.New("rows of different lengths")
		}
	}
	return Matrix(rows), nil
}

func empty(rows, columns int) Matrix {
	m := make(Matrix, rows)
	for r := range m {
		m[r] = make([]int, columns)
	}
	return m
}

func (m Matrix) columns() int {
	if len(m) == 0 {
		return 0
	}
	return len(m[0])
}

// Transpose exchanges rows and columns.
func (m Matrix) Transpose() Matrix {
	result := empty(m.columns(), len(m))
	for r, row := range m {
		for c, value := range row {
			result[c][r] = value
		}
	}
	return result
}

// Multiply returns the product with another matrix.
func (m Matrix) Multiply(other Matrix) (Matrix, error) {
	if m.columns() != len(other) {
		return nil, errors.New("sizes do not match")
	}
	result := empty(len(m), other.columns())
	for r := range result {
		for c := range result[r] {
			for k := range other {
				result[r][c] += m[r][k] * other[k][c]
			}
		}
	}
	return result, nil
}

// Power multiplies the matrix n times with itself.
func (m Matrix) Power(n int) (Matrix, error) {
	if n < 0 || len(m) != m.columns() {
		return nil, errors.New("no such power")
	}
	result := empty(len(m), len(m))
	for i := range result {
		result[i][i] = 1
	}
	for i := 0; i < n; i++ {
		result, _ = result.Multiply(m)
	}
	return result, nil
}
