VALUES = [
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"),
    (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
]


def to_roman(number):
    if not 1 <= number <= 3999:
        raise ValueError("number out of range")
    text = ""
    for value, letters in VALUES:
        while number >= value:
            text += letters
            number -= value
    return text


def from_roman(text):
    rest = text
    number = 0
    for value, letters in VALUES:
        while rest.startswith(letters):
            number += value
            rest = rest[len(letters):]
    if rest or not 1 <= number <= 3999 or to_roman(number) != text:
        raise ValueError("not a Roman number")
    return number
