import unittest

from solution import mean


class Test(unittest.TestCase):
    def test_it(self):
        self.assertEqual(mean([1, 2, 3]), 2)
        self.assertEqual(mean([]), 0)


if __name__ == '__main__':
    unittest.main()
