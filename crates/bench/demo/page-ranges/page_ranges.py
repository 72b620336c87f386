def normalise(text):
    pass
