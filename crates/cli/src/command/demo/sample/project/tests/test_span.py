import unittest

from freetime import Span, merge


class Spans(unittest.TestCase):
    def test_are_read_and_written(self):
        self.assertEqual(Span.parse("9:00-10:30"), Span(540, 630))
        self.assertEqual(str(Span(540, 630)), "9:00-10:30")


class Merging(unittest.TestCase):
    def become(self, spans, expected):
        found = " ".join(str(span) for span in merge([Span.parse(text) for text in spans.split()]))
        if found != expected:
            self.fail(f"spans {spans} become {found}, not {expected}")

    def test_joins_spans_that_overlap_or_touch(self):
        self.become("9:00-10:00 9:30-11:00 11:00-12:00", "9:00-12:00")

    def test_keeps_spans_apart_that_are_apart(self):
        self.become("13:00-14:00 9:00-10:00", "9:00-10:00 13:00-14:00")

    def test_adds_nothing_for_a_span_within_another(self):
        self.become("9:00-12:00 10:00-10:30", "9:00-12:00")


if __name__ == "__main__":
    unittest.main()
