import unittest

from account import Account, InsufficientFunds


class AccountTest(unittest.TestCase):
    def setUp(self):
        self.account = Account()
        self.account.deposit(500)

    def test_a_new_account_is_empty(self):
        self.assertEqual((Account().balance, Account().history), (0, []))

    def test_everything_can_be_withdrawn(self):
        self.account.withdraw(500)
        self.assertEqual(self.account.balance, 0)
        self.assertEqual(self.account.history, [("deposit", 500), ("withdraw", 500)])

    def test_amounts_must_be_positive(self):
        for amount in (0, -1):
            with self.assertRaises(ValueError):
                self.account.deposit(amount)
            with self.assertRaises(ValueError):
                self.account.withdraw(amount)
            with self.assertRaises(ValueError):
                self.account.transfer(amount, Account())
        self.assertEqual(self.account.history, [("deposit", 500)])

    def test_a_failed_withdrawal_changes_nothing(self):
        with self.assertRaises(InsufficientFunds):
            self.account.withdraw(501)
        self.assertEqual(self.account.balance, 500)
        self.assertEqual(self.account.history, [("deposit", 500)])

    def test_a_transfer_moves_money(self):
        other = Account()
        self.account.transfer(200, other)
        self.assertEqual((self.account.balance, other.balance), (300, 200))
        self.assertEqual(other.history, [("deposit", 200)])

    def test_a_failed_transfer_changes_neither_account(self):
        other = Account()
        with self.assertRaises(InsufficientFunds):
            self.account.transfer(501, other)
        self.assertEqual((self.account.balance, other.balance), (500, 0))
        self.assertEqual(other.history, [])


if __name__ == "__main__":
    unittest.main()
