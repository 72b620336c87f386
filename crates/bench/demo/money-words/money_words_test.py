import unittest

from money_words import in_words


class MoneyWordsTest(unittest.TestCase):
    def test_hundreds(self):
        self.assertEqual(in_words(12345), "one hundred twenty-three and 45/100")

    def test_round_hundreds(self):
        self.assertEqual(in_words(70000), "seven hundred and 00/100")

    def test_teens(self):
        self.assertEqual(in_words(41305), "four hundred thirteen and 05/100")

    def test_tens(self):
        self.assertEqual(in_words(8000), "eighty and 00/100")

    def test_cents_only(self):
        self.assertEqual(in_words(9), "zero and 09/100")

    def test_largest(self):
        self.assertEqual(in_words(99999), "nine hundred ninety-nine and 99/100")

    def test_out_of_range(self):
        for cents in [-1, 100000]:
            with self.subTest(cents), self.assertRaises(ValueError):
                in_words(cents)


if __name__ == "__main__":
    unittest.main()
