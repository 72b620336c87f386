DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]


def is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def day_of_year(year, month, day):
    if month < 1 or month > 12:
        raise ValueError("no such month")
    days = list(DAYS)
    if is_leap(year):
        days[1] = 29
    if day < 1 or day > days[month - 1]:
        raise ValueError("no such day")
    return sum(days[:month - 1]) + day
