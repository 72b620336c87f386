DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]


def is_leap(year):
    return year % 4 == 0


def day_of_year(year, month, day):
    if month < 1 or month > 12 or day < 1 or day > 31:
        raise ValueError("no such date")
    number = sum(DAYS[:month - 1]) + day
    if month > 1 and is_leap(year):
        number += 1
    return number
