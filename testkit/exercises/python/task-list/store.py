class Store:
    def __init__(self):
        self.titles = []

    def add(self, title):
        self.titles.append(title)
        return len(self.titles)

    def tasks(self):
        return [{"number": n, "title": title} for n, title in enumerate(self.titles, 1)]
