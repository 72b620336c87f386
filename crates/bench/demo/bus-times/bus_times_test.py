import unittest

from bus_times import next_bus


class BusTimesTest(unittest.TestCase):
    def test_later_today(self):
        self.assertEqual(next_bus(["07:45", "08:15", "22:00"], "07:50"), ("08:15", 25))

    def test_leaving_right_now(self):
        self.assertEqual(next_bus(["07:45", "08:15"], "08:15"), ("08:15", 0))

    def test_tomorrow(self):
        self.assertEqual(next_bus(["06:30", "22:00"], "23:45"), ("06:30", 405))

    def test_one_minute_late(self):
        self.assertEqual(next_bus(["10:00"], "10:01"), ("10:00", 1439))

    def test_no_bus(self):
        with self.assertRaises(ValueError):
            next_bus([], "10:00")


if __name__ == "__main__":
    unittest.main()
