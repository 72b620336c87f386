import unittest

from word_wheel import word_wheel


class WordWheelTest(unittest.TestCase):
    def test_order(self):
        words = ["stone", "notes", "tone", "onset", "cent"]
        self.assertEqual(word_wheel(words, "sten", "o"), ["notes", "onset", "stone", "tone"])

    def test_short_words_do_not_count(self):
        self.assertEqual(word_wheel(["one", "note"], "nte", "o"), ["note"])

    def test_centre_is_needed(self):
        self.assertEqual(word_wheel(["nest", "nose"], "nest", "o"), ["nose"])

    def test_letters_are_used_once(self):
        self.assertEqual(word_wheel(["noon", "none"], "nne", "o"), ["none"])

    def test_case_and_repeats(self):
        self.assertEqual(word_wheel(["NONE", "none"], "NnE", "O"), ["none"])


if __name__ == "__main__":
    unittest.main()
