def chunks(items, size):
    result = []
    for start in range(0, len(items) - size + 1, size):
        result.append(items[start:start + size])
    return result
