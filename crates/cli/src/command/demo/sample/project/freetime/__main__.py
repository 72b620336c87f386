"""python3 -m freetime DAY MEETING..."""

import sys

from . import Span, free


def in_words(minutes):
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours} h"] * (hours > 0) + [f"{minutes} min"] * (minutes > 0)
    return " ".join(parts)


def main(arguments):
    if not arguments:
        print(__doc__)
        return 2
    day, *meetings = [Span.parse(text) for text in arguments]
    for gap in free(day, meetings):
        print(f"{gap!s:<12} {in_words(gap.minutes)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
