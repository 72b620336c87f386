def next_bus(times, now):
    pass
