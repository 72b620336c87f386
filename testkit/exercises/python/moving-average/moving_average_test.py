import unittest

from moving_average import moving_average


class MovingAverageTest(unittest.TestCase):
    def test_every_window_is_averaged(self):
        self.assertEqual(moving_average([1, 2, 3, 4, 5], 3), [2, 3, 4])

    def test_window_as_long_as_the_list(self):
        self.assertEqual(moving_average([2, 4], 2), [3])

    def test_window_of_one_copies_the_values(self):
        self.assertEqual(moving_average([7, 1, 4], 1), [7, 1, 4])

    def test_short_list_has_no_average(self):
        self.assertEqual(moving_average([1, 2], 3), [])
        self.assertEqual(moving_average([], 1), [])

    def test_size_must_be_positive(self):
        with self.assertRaises(ValueError):
            moving_average([1, 2, 3], 0)
        with self.assertRaises(ValueError):
            moving_average([1, 2, 3], -2)


if __name__ == "__main__":
    unittest.main()
