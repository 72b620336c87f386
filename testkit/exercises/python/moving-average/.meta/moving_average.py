def moving_average(values, size):
    if size < 1:
        raise ValueError("size must be at least 1")
    averages = []
    for start in range(len(values) - size + 1):
        window = values[start:start + size]
        averages.append(sum(window) / size)
    return averages
