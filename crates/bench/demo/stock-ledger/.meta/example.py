class Ledger:
    def __init__(self):
        self.lots = []

    def buy(self, count, price):
        self.lots.append((count, price))

    def sell(self, count, price):
        if count > sum(held for held, _ in self.lots):
            raise ValueError("not enough shares")
        profit = 0
        while count > 0:
            held, paid = self.lots.pop(0)
            sold = min(held, count)
            profit += sold * (price - paid)
            count -= sold
            if held > sold:
                self.lots.insert(0, (held - sold, paid))
        return profit

    def value(self):
        return sum(count * price for count, price in self.lots)
