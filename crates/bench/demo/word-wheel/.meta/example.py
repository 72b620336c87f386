from collections import Counter


def word_wheel(words, letters, centre):
    centre = centre.lower()
    wheel = Counter(letters.lower() + centre)
    fits = lambda word: len(word) >= 4 and centre in word and not Counter(word) - wheel
    found = {word.lower() for word in words if fits(word.lower())}
    return sorted(found, key=lambda word: (-len(word), word))
