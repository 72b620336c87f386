def columns(rows):
    pass
