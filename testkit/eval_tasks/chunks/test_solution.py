import unittest

from solution import chunks


class Test(unittest.TestCase):
    def test_it(self):
        self.assertEqual(chunks([1, 2, 3, 4, 5], 2), [[1, 2], [3, 4], [5]])
        self.assertEqual(chunks([], 3), [])


if __name__ == '__main__':
    unittest.main()
