import unittest
from pathlib import Path

from wrap import wrap


class WrapTest(unittest.TestCase):
    def test_short_text_is_one_line(self):
        self.assertEqual(wrap("to be or not", 40), ["to be or not"])

    def test_lines_are_filled(self):
        self.assertEqual(wrap("to be or not to be", 5), ["to be", "or", "not", "to be"])
        self.assertEqual(wrap("aa bb cc", 6), ["aa bb", "cc"])

    def test_white_space_is_reduced(self):
        self.assertEqual(wrap("  one\ntwo   three ", 9), ["one two", "three"])

    def test_long_words_are_cut(self):
        self.assertEqual(wrap("abcdefgh", 3), ["abc", "def", "gh"])
        self.assertEqual(wrap("x abcdefgh y", 4), ["x", "abcd", "efgh", "y"])
        self.assertEqual(wrap("x abcdefg y", 5), ["x", "abcde", "fg y"])

    def test_no_words(self):
        self.assertEqual(wrap("", 10), [])
        self.assertEqual(wrap(" \n ", 10), [])

    def test_the_module_textwrap_is_not_used(self):
        self.assertNotIn("textwrap", Path("wrap.py").read_text())


if __name__ == "__main__":
    unittest.main()
