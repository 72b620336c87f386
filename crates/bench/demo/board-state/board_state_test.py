import unittest

from board_state import state


class BoardStateTest(unittest.TestCase):
    def test_to_move(self):
        self.assertEqual(state(["   ", "   ", "   "]), "X to move")
        self.assertEqual(state(["X  ", " O ", "  X"]), "O to move")

    def test_wins(self):
        self.assertEqual(state(["XXX", "OO ", "   "]), "X wins")
        self.assertEqual(state(["OX ", "XO ", " XO"]), "O wins")

    def test_draw(self):
        self.assertEqual(state(["XOX", "XOO", "OXX"]), "draw")

    def test_two_lines_at_once(self):
        self.assertEqual(state(["XXX", "XOO", "XOO"]), "X wins")

    def test_wrong_counts(self):
        for board in [["XX ", "   ", "   "], ["O  ", "   ", "   "], ["OO ", "X  ", "   "]]:
            with self.subTest(board), self.assertRaises(ValueError):
                state(board)

    def test_moves_after_a_win(self):
        for board in [["XXX", "OOO", "   "], ["XXX", "OO ", "O  "], ["OOO", "XX ", "XX "]]:
            with self.subTest(board), self.assertRaises(ValueError):
                state(board)


if __name__ == "__main__":
    unittest.main()
