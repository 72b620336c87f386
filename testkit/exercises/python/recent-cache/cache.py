class Cache:
    def __init__(self):
        self.entries = {}

    def put(self, key, value):
        self.entries[key] = value

    def get(self, key, default=None):
        return self.entries.get(key, default)

    def __contains__(self, key):
        return key in self.entries

    def __len__(self):
        return len(self.entries)
