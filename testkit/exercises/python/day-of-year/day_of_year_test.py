import unittest
from pathlib import Path

from day_of_year import day_of_year


class DayOfYearTest(unittest.TestCase):
    def test_first_and_last_day(self):
        self.assertEqual(day_of_year(2023, 1, 1), 1)
        self.assertEqual(day_of_year(2023, 12, 31), 365)
        self.assertEqual(day_of_year(2024, 12, 31), 366)

    def test_around_the_end_of_february(self):
        self.assertEqual(day_of_year(2024, 2, 28), 59)
        self.assertEqual(day_of_year(2024, 2, 29), 60)
        self.assertEqual(day_of_year(2024, 3, 1), 61)
        self.assertEqual(day_of_year(2023, 3, 1), 60)

    def test_centuries(self):
        self.assertEqual(day_of_year(1900, 3, 1), 60)
        self.assertEqual(day_of_year(2000, 3, 1), 61)

    def test_dates_that_do_not_exist(self):
        for date in [(2023, 2, 29), (1900, 2, 29), (2024, 2, 30), (2024, 4, 31), (2024, 13, 1), (2024, 0, 1), (2024, 5, 0)]:
            with self.assertRaises(ValueError, msg=str(date)):
                day_of_year(*date)

    def test_no_calendar_module_is_used(self):
        text = Path("day_of_year.py").read_text()
        self.assertNotIn("import", text)


if __name__ == "__main__":
    unittest.main()
