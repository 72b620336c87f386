def encode(text):
    if any(character.isdigit() for character in text):
        raise ValueError("digits cannot be encoded")
    code = []
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or text[end] != text[start]:
            length = end - start
            code.append((str(length) if length > 1 else "") + text[start])
            start = end
    return "".join(code)


def decode(code):
    text = []
    number = ""
    for character in code:
        if character.isdigit():
            number += character
        else:
            text.append(character * int(number or "1"))
            number = ""
    return "".join(text)
