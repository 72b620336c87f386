"""What is left of a day between its meetings."""

from .span import Span, merge


def free(day, meetings, at_least=1):
    """The gaps of at least so many minutes, in order."""
    gaps = []
    cursor = day.start
    for busy in merge(meetings):
        if busy.start >= day.end:
            break
        if busy.start > cursor:
            gaps.append(Span(cursor, busy.start))
        cursor = busy.end
    if cursor < day.end:
        gaps.append(Span(cursor, day.end))
    return [gap for gap in gaps if gap.minutes >= at_least]
