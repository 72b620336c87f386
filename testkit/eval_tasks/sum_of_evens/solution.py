def sum_of_evens(numbers):
    total = 0
    for number in numbers:
        if number % 2 == 1:
            total += number
    return total
