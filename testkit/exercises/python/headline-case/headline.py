SMALL = {"a", "an", "and", "in", "of", "on", "the", "to"}


def headline(text):
    words = text.lower().split()
    result = []
    for index, word in enumerate(words):
        if index > 0 and word in SMALL:
            result.append(word)
        else:
            result.append(word.title())
    return " ".join(result)
