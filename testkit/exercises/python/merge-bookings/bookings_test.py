import unittest

from bookings import merge


class MergeTest(unittest.TestCase):
    def test_separate_bookings_stay(self):
        self.assertEqual(merge([(1, 2), (4, 6)]), [(1, 2), (4, 6)])

    def test_overlapping_bookings_join(self):
        self.assertEqual(merge([(1, 4), (3, 6)]), [(1, 6)])

    def test_touching_bookings_join(self):
        self.assertEqual(merge([(1, 2), (2, 3)]), [(1, 3)])

    def test_a_booking_inside_another_changes_nothing(self):
        self.assertEqual(merge([(8, 18), (9, 10), (17, 20)]), [(8, 20)])

    def test_order_does_not_matter(self):
        self.assertEqual(merge([(10, 12), (1, 3), (2, 5)]), [(1, 5), (10, 12)])

    def test_the_argument_is_not_changed(self):
        bookings = [(5, 6), (1, 2)]
        merge(bookings)
        self.assertEqual(bookings, [(5, 6), (1, 2)])

    def test_no_bookings(self):
        self.assertEqual(merge([]), [])


if __name__ == "__main__":
    unittest.main()
