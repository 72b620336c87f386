def parse(text):
    pass
