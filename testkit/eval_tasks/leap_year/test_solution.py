import unittest

from solution import is_leap_year


class Test(unittest.TestCase):
    def test_it(self):
        self.assertEqual([is_leap_year(y) for y in (1900, 2000, 2023, 2024)], [False, True, False, True])


if __name__ == '__main__':
    unittest.main()
