import unittest

from stock_ledger import Ledger


class LedgerTest(unittest.TestCase):
    def setUp(self):
        self.ledger = Ledger()
        self.ledger.buy(10, 5)
        self.ledger.buy(10, 7)

    def test_oldest_first(self):
        self.assertEqual(self.ledger.sell(10, 8), 30)
        self.assertEqual(self.ledger.value(), 70)

    def test_part_of_a_lot(self):
        self.assertEqual(self.ledger.sell(4, 6), 4)
        self.assertEqual(self.ledger.value(), 30 + 70)

    def test_across_lots(self):
        self.assertEqual(self.ledger.sell(15, 10), 50 + 15)
        self.assertEqual(self.ledger.value(), 35)

    def test_too_many(self):
        with self.assertRaises(ValueError):
            self.ledger.sell(21, 10)
        self.assertEqual(self.ledger.value(), 120)


if __name__ == "__main__":
    unittest.main()
