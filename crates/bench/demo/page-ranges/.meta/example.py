import re


def normalise(text):
    if not text.strip():
        return ""
    ranges = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if not match:
            raise ValueError(f"not a page: {part!r}")
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        if min(first, last) < 1:
            raise ValueError("pages start at 1")
        ranges.append((min(first, last), max(first, last)))
    joined = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1][1] = max(joined[-1][1], last)
        else:
            joined.append([first, last])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in joined)
