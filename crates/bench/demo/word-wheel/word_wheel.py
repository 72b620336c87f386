def word_wheel(words, letters, centre):
    pass
