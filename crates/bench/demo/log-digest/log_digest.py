from collections import Counter


def digest(lines):
    found = {}
    for line in lines:
        date, time, level, message = line.split()
        found.setdefault(level, Counter())[message] += 1
    return {level: sorted(counts.items()) for level, counts in found.items()}
