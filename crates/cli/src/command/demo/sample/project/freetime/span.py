"""Spans of time within a day, in minutes since midnight."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Span:
    """From `start` up to, but not including, `end`."""

    start: int
    end: int

    @classmethod
    def parse(cls, text):
        """Reads a span like 9:00-10:30."""
        start, _, end = text.partition("-")
        return cls(to_minutes(start), to_minutes(end))

    @property
    def minutes(self):
        return self.end - self.start

    def __str__(self):
        return f"{to_clock(self.start)}-{to_clock(self.end)}"


def to_minutes(clock):
    hours, _, minutes = clock.partition(":")
    return int(hours) * 60 + int(minutes or 0)


def to_clock(minutes):
    return f"{minutes // 60}:{minutes % 60:02}"


def merge(spans):
    """The same time in order, with spans that overlap or touch made one."""
    merged = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, span.end)
        else:
            merged.append(span)
    return merged
