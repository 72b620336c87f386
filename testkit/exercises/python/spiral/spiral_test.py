import unittest

from spiral import fill, spiral


class SpiralTest(unittest.TestCase):
    def test_square(self):
        self.assertEqual(spiral([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), [1, 2, 3, 6, 9, 8, 7, 4, 5])

    def test_wide_and_tall(self):
        self.assertEqual(spiral([[1, 2, 3, 4], [5, 6, 7, 8]]), [1, 2, 3, 4, 8, 7, 6, 5])
        self.assertEqual(spiral([[1, 2], [3, 4], [5, 6]]), [1, 2, 4, 6, 5, 3])

    def test_one_row_or_column(self):
        self.assertEqual(spiral([[1, 2, 3]]), [1, 2, 3])
        self.assertEqual(spiral([[1], [2], [3]]), [1, 2, 3])

    def test_nothing(self):
        self.assertEqual(spiral([]), [])

    def test_the_grid_is_not_changed(self):
        grid = [[1, 2], [3, 4]]
        spiral(grid)
        self.assertEqual(grid, [[1, 2], [3, 4]])

    def test_fill(self):
        self.assertEqual(fill(3, 3), [[1, 2, 3], [8, 9, 4], [7, 6, 5]])
        self.assertEqual(fill(2, 4), [[1, 2, 3, 4], [8, 7, 6, 5]])
        self.assertEqual(fill(1, 2), [[1, 2]])

    def test_fill_and_spiral_agree(self):
        for rows, columns in [(4, 5), (5, 4), (1, 7), (6, 1)]:
            self.assertEqual(spiral(fill(rows, columns)), list(range(1, rows * columns + 1)))


if __name__ == "__main__":
    unittest.main()
