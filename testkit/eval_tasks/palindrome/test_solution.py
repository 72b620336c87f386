import unittest

from solution import is_palindrome


class Test(unittest.TestCase):
    def test_it(self):
        self.assertTrue(is_palindrome('Never odd or even'))
        self.assertTrue(is_palindrome('abba'))
        self.assertFalse(is_palindrome('abc'))


if __name__ == '__main__':
    unittest.main()
