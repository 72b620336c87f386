import unittest

from solution import Stack


class Test(unittest.TestCase):
    def test_it(self):
        stack = Stack()
        self.assertIsNone(stack.pop())
        stack.push(1)
        self.assertEqual(stack.peek(), 1)
        self.assertEqual(stack.pop(), 1)


if __name__ == '__main__':
    unittest.main()
