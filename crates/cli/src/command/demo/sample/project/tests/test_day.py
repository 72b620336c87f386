import unittest

from freetime import Span, free

DAY = Span.parse("9:00-17:00")


class FreeTime(unittest.TestCase):
    def leave(self, meetings, expected, at_least=1):
        gaps = free(DAY, [Span.parse(text) for text in meetings.split()], at_least)
        found = " ".join(str(gap) for gap in gaps)
        if found != expected:
            self.fail(f"meetings {meetings} leave {found}, not {expected}")

    def test_is_the_whole_day_without_meetings(self):
        self.leave("", "9:00-17:00")

    def test_is_what_meetings_leave(self):
        self.leave("11:30-12:15 9:00-10:00", "10:00-11:30 12:15-17:00")

    def test_has_no_gaps_that_are_too_short(self):
        self.leave("9:00-12:00 12:20-16:00", "16:00-17:00", at_least=30)

    def test_is_never_in_the_middle_of_a_meeting(self):
        self.leave("9:00-12:00 10:00-10:30", "12:00-17:00")

    def test_begins_with_the_day(self):
        self.leave("7:30-8:15", "9:00-17:00")

    def test_ends_with_the_day(self):
        self.leave("16:00-18:30 19:00-20:00", "9:00-16:00")


if __name__ == "__main__":
    unittest.main()
