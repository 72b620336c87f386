import unittest

from page_ranges import normalise


class PageRangesTest(unittest.TestCase):
    def test_order_and_join(self):
        self.assertEqual(normalise("3, 1-2, 7-5"), "1-3,5-7")

    def test_overlap(self):
        self.assertEqual(normalise("1-10,4-6,9-12"), "1-12")

    def test_apart(self):
        self.assertEqual(normalise("10,1,5"), "1,5,10")

    def test_repeated(self):
        self.assertEqual(normalise("4,4,4-4"), "4")

    def test_empty(self):
        self.assertEqual(normalise("  "), "")

    def test_mistakes(self):
        for text in ["a", "1-", "-3", "1,,2", "0-4", "1-2-3"]:
            with self.subTest(text), self.assertRaises(ValueError):
                normalise(text)


if __name__ == "__main__":
    unittest.main()
