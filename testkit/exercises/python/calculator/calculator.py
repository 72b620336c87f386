import re


def calculate(text):
    tokens = re.findall(r"\d+|\S", text)
    result = int(tokens[0])
    for operator, number in zip(tokens[1::2], tokens[2::2]):
        if operator == "+":
            result += int(number)
        elif operator == "-":
            result -= int(number)
        else:
            raise ValueError(f"unknown operator {operator}")
    return result
