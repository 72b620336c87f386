import re


class Parser:
    def __init__(self, text):
        self.tokens = re.findall(r"\d+|\S", text)

    def peek(self):
        return self.tokens[0] if self.tokens else ""

    def take(self):
        if not self.tokens:
            raise ValueError("unexpected end")
        return self.tokens.pop(0)

    def sum(self):
        result = self.product()
        while self.peek() in ("+", "-"):
            if self.take() == "+":
                result += self.product()
            else:
                result -= self.product()
        return result

    def product(self):
        result = self.factor()
        while self.peek() in ("*", "/"):
            if self.take() == "*":
                result *= self.factor()
            else:
                result /= self.factor()
        return result

    def factor(self):
        token = self.take()
        if token == "-":
            return -self.factor()
        if token == "(":
            result = self.sum()
            if self.take() != ")":
                raise ValueError("missing )")
            return result
        if not token.isdigit():
            raise ValueError(f"unexpected {token}")
        return int(token)


def calculate(text):
    parser = Parser(text)
    result = parser.sum()
    if parser.tokens:
        raise ValueError(f"unexpected {parser.peek()}")
    return result
