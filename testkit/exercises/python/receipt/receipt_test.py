import unittest

from receipt import receipt


class ReceiptTest(unittest.TestCase):
    def test_items_and_total(self):
        expected = "2 x Tea: 7.00\n1 x Bread: 2.45\nTotal: 9.45"
        self.assertEqual(receipt([("Tea", 2, 350), ("Bread", 1, 245)]), expected)

    def test_nothing_bought(self):
        self.assertEqual(receipt([]), "Total: 0.00")

    def test_discount(self):
        expected = "2 x Tea: 7.00\n  10 % off: -0.70\nTotal: 6.30"
        self.assertEqual(receipt([("Tea", 2, 350)], {"Tea": 10}), expected)

    def test_discounts_are_rounded_down(self):
        expected = "1 x Pen: 0.99\n  15 % off: -0.14\nTotal: 0.85"
        self.assertEqual(receipt([("Pen", 1, 99)], discounts={"Pen": 15}), expected)

    def test_only_the_named_item_is_reduced(self):
        expected = "1 x Tea: 1.00\n1 x Pen: 1.00\n  50 % off: -0.50\nTotal: 1.50"
        self.assertEqual(receipt([("Tea", 1, 100), ("Pen", 1, 100)], {"Pen": 50, "Hat": 20}), expected)


if __name__ == "__main__":
    unittest.main()
