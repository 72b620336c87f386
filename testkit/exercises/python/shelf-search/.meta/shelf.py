def first_index(shelf, number):
    low = 0
    high = len(shelf)
    while low < high:
        middle = (low + high) // 2
        if shelf[middle] < number:
            low = middle + 1
        else:
            high = middle
    if low < len(shelf) and shelf[low] == number:
        return low
    return -1
