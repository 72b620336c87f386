class Ledger:
    def __init__(self):
        self.lots = []

    def buy(self, count, price):
        self.lots.append((count, price))

    def sell(self, count, price):
        profit = 0
        while count > 0:
            if not self.lots:
                raise ValueError("not enough shares")
            held, paid = self.lots.pop()
            sold = min(held, count)
            profit += sold * (price - paid)
            count -= sold
        return profit

    def value(self):
        return sum(count * price for count, price in self.lots)
