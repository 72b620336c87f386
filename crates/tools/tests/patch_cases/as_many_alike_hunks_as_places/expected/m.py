import os


class Reader:
    def open(self):
        return 2

    def close(self):
        return 1


class Writer:
    def open(self):
        return 3

    def close(self):
        return 1
