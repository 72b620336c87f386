import unittest

from run_length import decode, encode


class RunLengthTest(unittest.TestCase):
    def test_runs_are_counted(self):
        self.assertEqual(encode("aaab"), "3ab")
        self.assertEqual(encode("abbbcc"), "a3b2c")

    def test_single_characters_stay(self):
        self.assertEqual(encode("xyz"), "xyz")
        self.assertEqual(encode(""), "")

    def test_spaces_are_characters(self):
        self.assertEqual(encode("a  b"), "a2 b")

    def test_digits_cannot_be_encoded(self):
        with self.assertRaises(ValueError):
            encode("a1b")

    def test_decode(self):
        self.assertEqual(decode("3ab"), "aaab")
        self.assertEqual(decode("12xy"), "x" * 12 + "y")
        self.assertEqual(decode(""), "")

    def test_decode_reverses_encode(self):
        for text in ["zzz ZZ  zZ", "w" * 123 + "b", "hello"]:
            self.assertEqual(decode(encode(text)), text)


if __name__ == "__main__":
    unittest.main()
