def in_words(cents):
    pass
