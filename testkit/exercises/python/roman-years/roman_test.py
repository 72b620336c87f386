import unittest

from roman import from_roman, to_roman

PAIRS = {1: "I", 4: "IV", 9: "IX", 14: "XIV", 40: "XL", 90: "XC", 400: "CD", 1666: "MDCLXVI", 1994: "MCMXCIV", 3999: "MMMCMXCIX"}


class RomanTest(unittest.TestCase):
    def test_to_roman(self):
        for number, text in PAIRS.items():
            self.assertEqual(to_roman(number), text)

    def test_from_roman(self):
        for number, text in PAIRS.items():
            self.assertEqual(from_roman(text), number)

    def test_every_number_survives_both_directions(self):
        for number in range(1, 4000):
            self.assertEqual(from_roman(to_roman(number)), number)

    def test_numbers_out_of_range(self):
        for number in (0, -1, 4000):
            with self.assertRaises(ValueError):
                to_roman(number)

    def test_other_forms_are_refused(self):
        for text in ["", "VIIII", "IC", "iv", "IIX", "VX", "MMMM", "XIVI", "A"]:
            with self.assertRaises(ValueError, msg=text):
                from_roman(text)


if __name__ == "__main__":
    unittest.main()
