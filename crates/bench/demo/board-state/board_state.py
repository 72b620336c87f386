def state(board):
    pass
