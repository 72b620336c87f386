import unittest

from solution import to_roman


class Test(unittest.TestCase):
    def test_it(self):
        self.assertEqual([to_roman(n) for n in (1, 4, 9, 40, 1994)], ['I', 'IV', 'IX', 'XL', 'MCMXCIV'])


if __name__ == '__main__':
    unittest.main()
