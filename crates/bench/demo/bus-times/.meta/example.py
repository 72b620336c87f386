def minutes(text):
    hours, rest = text.split(":")
    return int(hours) * 60 + int(rest)


def next_bus(times, now):
    if not times:
        raise ValueError("no bus runs")
    start = minutes(now)
    for time in times:
        if minutes(time) >= start:
            return time, minutes(time) - start
    return times[0], minutes(times[0]) + 1440 - start
