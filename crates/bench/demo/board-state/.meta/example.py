LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def state(board):
    cells = "".join(board)
    x, o = cells.count("X"), cells.count("O")
    won = {mark for mark in "XO" if any(all(cells[i] == mark for i in line) for line in LINES)}
    if x - o not in (0, 1) or len(won) == 2:
        raise ValueError("impossible position")
    if ("X" in won and x == o) or ("O" in won and x != o):
        raise ValueError("a move after the end")
    if won:
        return f"{won.pop()} wins"
    if x + o == 9:
        return "draw"
    return "X to move" if x == o else "O to move"
