import unittest

from shelf import first_index


class Counting(list):
    def __init__(self, values):
        super().__init__(values)
        self.reads = 0

    def __getitem__(self, index):
        self.reads += 1
        return super().__getitem__(index)

    def __iter__(self):
        raise AssertionError("the whole shelf must not be read")

    def index(self, *args):
        raise AssertionError("the whole shelf must not be read")


class FirstIndexTest(unittest.TestCase):
    def test_every_place_is_found(self):
        shelf = [2, 3, 5, 7, 11, 13]
        for index, number in enumerate(shelf):
            self.assertEqual(first_index(shelf, number), index)

    def test_absent_numbers(self):
        for number in (1, 4, 6, 12, 14):
            self.assertEqual(first_index([2, 3, 5, 7, 11, 13], number), -1)
        self.assertEqual(first_index([], 1), -1)

    def test_one_book(self):
        self.assertEqual(first_index([9], 9), 0)

    def test_the_first_of_equal_numbers_is_found(self):
        self.assertEqual(first_index([1, 4, 4, 4, 4, 4, 9], 4), 1)
        self.assertEqual(first_index([4, 4, 4], 4), 0)

    def test_few_books_are_read(self):
        shelf = Counting(range(100000))
        self.assertEqual(first_index(shelf, 77777), 77777)
        self.assertLess(shelf.reads, 60)
        shelf = Counting([5] * 100000)
        self.assertEqual(first_index(shelf, 5), 0)
        self.assertLess(shelf.reads, 60)


if __name__ == "__main__":
    unittest.main()
