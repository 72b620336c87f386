import unittest

from solution import fizzbuzz


class Test(unittest.TestCase):
    def test_it(self):
        self.assertEqual([fizzbuzz(n) for n in (1, 3, 5, 15)], ['1', 'Fizz', 'Buzz', 'FizzBuzz'])


if __name__ == '__main__':
    unittest.main()
