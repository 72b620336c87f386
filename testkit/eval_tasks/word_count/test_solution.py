import unittest

from solution import word_count


class Test(unittest.TestCase):
    def test_it(self):
        self.assertEqual(word_count('a b A'), {'a': 2, 'b': 1})
        self.assertEqual(word_count(''), {})


if __name__ == '__main__':
    unittest.main()
