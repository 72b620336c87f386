import unittest

from headline import headline


class HeadlineTest(unittest.TestCase):
    def test_words_are_capitalised(self):
        self.assertEqual(headline("green apples"), "Green Apples")

    def test_small_words_in_the_middle_are_lower_case(self):
        self.assertEqual(headline("The Lord Of The Flies"), "The Lord of the Flies")

    def test_first_and_last_words_are_capitalised(self):
        self.assertEqual(headline("the place to go to"), "The Place to Go To")
        self.assertEqual(headline("a"), "A")

    def test_apostrophes_do_not_start_a_word(self):
        self.assertEqual(headline("it's o'clock in DON'T"), "It's O'clock in Don't")

    def test_spaces_are_reduced(self):
        self.assertEqual(headline("  war   and peace "), "War and Peace")
        self.assertEqual(headline(""), "")


if __name__ == "__main__":
    unittest.main()
