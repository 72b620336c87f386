class InsufficientFunds(Exception):
    pass


class Account:
    def __init__(self):
        self.balance = 0
        self.history = []

    def deposit(self, amount):
        self.balance += amount
        self.history.append(("deposit", amount))

    def withdraw(self, amount):
        self.history.append(("withdraw", amount))
        if amount >= self.balance:
            raise InsufficientFunds()
        self.balance -= amount

    def transfer(self, amount, other):
        other.deposit(amount)
        self.withdraw(amount)
