SMALL = {"a", "an", "and", "in", "of", "on", "the", "to"}


def headline(text):
    words = text.lower().split()
    result = []
    for index, word in enumerate(words):
        if 0 < index < len(words) - 1 and word in SMALL:
            result.append(word)
        else:
            result.append(word.capitalize())
    return " ".join(result)
