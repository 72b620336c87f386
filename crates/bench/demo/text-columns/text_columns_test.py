import unittest

from text_columns import columns


class ColumnsTest(unittest.TestCase):
    def test_alignment(self):
        rows = [["name", "count"], ["tea", "7"], ["bread", "120"]]
        self.assertEqual(columns(rows), "name   count\n-----  -----\ntea        7\nbread    120")

    def test_text_among_numbers(self):
        rows = [["a", "b"], ["1", "x"], ["22", "3"]]
        self.assertEqual(columns(rows), " a  b\n--  -\n 1  x\n22  3")

    def test_short_rows(self):
        rows = [["key", "value"], ["k"], ["n", "-5"]]
        self.assertEqual(columns(rows), "key  value\n---  -----\nk\nn       -5")

    def test_heading_only(self):
        self.assertEqual(columns([["one", "two"]]), "one  two\n---  ---")

    def test_nothing(self):
        self.assertEqual(columns([]), "")


if __name__ == "__main__":
    unittest.main()
