def spiral(grid):
    pass


def fill(rows, columns):
    pass
