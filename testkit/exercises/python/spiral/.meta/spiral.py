def path(rows, columns):
    top, left, bottom, right = 0, 0, rows - 1, columns - 1
    while top <= bottom and left <= right:
        for column in range(left, right + 1):
            yield top, column
        for row in range(top + 1, bottom + 1):
            yield row, right
        if top < bottom:
            for column in range(right - 1, left - 1, -1):
                yield bottom, column
        if left < right:
            for row in range(bottom - 1, top, -1):
                yield row, left
        top, left, bottom, right = top + 1, left + 1, bottom - 1, right - 1


def spiral(grid):
    columns = len(grid[0]) if grid else 0
    return [grid[row][column] for row, column in path(len(grid), columns)]


def fill(rows, columns):
    grid = [[0] * columns for _ in range(rows)]
    for number, (row, column) in enumerate(path(rows, columns), 1):
        grid[row][column] = number
    return grid
