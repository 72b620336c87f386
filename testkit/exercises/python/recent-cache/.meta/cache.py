class Cache:
    def __init__(self, capacity=None):
        if capacity is not None and capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self.entries = {}

    def put(self, key, value):
        self.entries.pop(key, None)
        if self.capacity is not None and len(self.entries) >= self.capacity:
            del self.entries[next(iter(self.entries))]
        self.entries[key] = value

    def get(self, key, default=None):
        if key not in self.entries:
            return default
        value = self.entries.pop(key)
        self.entries[key] = value
        return value

    def __contains__(self, key):
        return key in self.entries

    def __len__(self):
        return len(self.entries)
