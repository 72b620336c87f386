class InsufficientFunds(Exception):
    pass


class Account:
    def __init__(self):
        self.balance = 0
        self.history = []

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount must be greater than 0")
        self.balance += amount
        self.history.append(("deposit", amount))

    def withdraw(self, amount):
        if amount <= 0:
            raise ValueError("amount must be greater than 0")
        if amount > self.balance:
            raise InsufficientFunds()
        self.balance -= amount
        self.history.append(("withdraw", amount))

    def transfer(self, amount, other):
        self.withdraw(amount)
        other.deposit(amount)
