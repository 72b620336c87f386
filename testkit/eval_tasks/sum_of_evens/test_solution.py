import unittest

from solution import sum_of_evens


class Test(unittest.TestCase):
    def test_it(self):
        self.assertEqual(sum_of_evens([1, 2, 3, 4]), 6)
        self.assertEqual(sum_of_evens([]), 0)
        self.assertEqual(sum_of_evens([-2, 5]), -2)


if __name__ == '__main__':
    unittest.main()
