import unittest
from pathlib import Path

from calculator import calculate


class CalculatorTest(unittest.TestCase):
    def test_sums(self):
        self.assertEqual(calculate("1 + 2 - 10"), -7)
        self.assertEqual(calculate("42"), 42)

    def test_products_come_first(self):
        self.assertEqual(calculate("2 + 3 * 4 - 5"), 9)
        self.assertEqual(calculate("8 / 4 / 2"), 1)
        self.assertEqual(calculate("7 / 2"), 3.5)

    def test_parentheses(self):
        self.assertEqual(calculate("(2 + 3) * (4 - (1 + 1))"), 10)

    def test_negative_numbers(self):
        self.assertEqual(calculate("-3 + 5"), 2)
        self.assertEqual(calculate("2 * -3"), -6)
        self.assertEqual(calculate("-(1 + 2)"), -3)

    def test_spaces_do_not_matter(self):
        self.assertEqual(calculate(" 1+2*(3-4) "), -1)

    def test_division_by_zero(self):
        with self.assertRaises(ZeroDivisionError):
            calculate("1 / (2 - 2)")

    def test_faulty_expressions(self):
        for text in ["", "1 +", "* 2", "(1", "1)", "1 2", "a + 1", "1 % 2", "()"]:
            with self.assertRaises(ValueError, msg=text):
                calculate(text)

    def test_nothing_is_evaluated(self):
        text = Path("calculator.py").read_text()
        self.assertNotIn("eval(", text)
        self.assertNotIn("exec(", text)
        self.assertNotIn("ast", text)


if __name__ == "__main__":
    unittest.main()
