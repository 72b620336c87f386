def moving_average(values, size):
    averages = []
    for start in range(len(values) - size):
        window = values[start:start + size]
        averages.append(sum(window) / size)
    return averages
