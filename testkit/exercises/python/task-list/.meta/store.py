RANKS = {"high": 0, "normal": 1, "low": 2}


class Store:
    def __init__(self):
        self.entries = {}

    def add(self, title, priority="normal"):
        if priority not in RANKS:
            raise ValueError(f"unknown priority {priority}")
        number = len(self.entries) + 1
        self.entries[number] = {"number": number, "title": title, "priority": priority, "done": False}
        return number

    def complete(self, number):
        self.entries[number]["done"] = True

    def tasks(self):
        def rank(task):
            return task["done"], RANKS[task["priority"]], task["number"]

        return sorted(self.entries.values(), key=rank)
