import unittest

from freetime import Span, free

DAY = Span.parse("9:00-17:00")


def gaps(*meetings, at_least=1):
    return [str(gap) for gap in free(DAY, [Span.parse(text) for text in meetings], at_least)]


class FreeTime(unittest.TestCase):
    def test_is_the_whole_day_without_meetings(self):
        self.assertEqual(gaps(), ["9:00-17:00"])

    def test_is_what_meetings_leave(self):
        self.assertEqual(gaps("11:30-12:15", "9:00-10:00"), ["10:00-11:30", "12:15-17:00"])

    def test_leaves_out_gaps_that_are_too_short(self):
        self.assertEqual(gaps("9:00-12:00", "12:20-16:00", at_least=30), ["16:00-17:00"])

    def test_is_never_in_the_middle_of_a_meeting(self):
        self.assertEqual(gaps("9:00-12:00", "10:00-10:30"), ["12:00-17:00"])

    def test_begins_with_the_day(self):
        self.assertEqual(gaps("7:30-8:15"), ["9:00-17:00"])

    def test_ends_with_the_day(self):
        self.assertEqual(gaps("16:00-18:30", "19:00-20:00"), ["9:00-16:00"])


if __name__ == "__main__":
    unittest.main()
