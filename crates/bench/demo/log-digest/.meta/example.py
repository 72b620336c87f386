import re
from collections import Counter

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (\S+) (.*)")


def digest(lines):
    entries = []
    for line in lines:
        match = LINE.fullmatch(line)
        if match:
            entries.append([match[1], match[2]])
        elif entries:
            entries[-1][1] += "\n" + line
    found = {}
    for level, message in entries:
        found.setdefault(level, Counter())[message] += 1
    order = lambda counts: sorted(counts.items(), key=lambda item: -item[1])
    return {level: order(counts) for level, counts in found.items()}
