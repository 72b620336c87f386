import unittest

from store import Store
from view import render


class TaskListTest(unittest.TestCase):
    def setUp(self):
        self.store = Store()
        self.store.add("Sleep")
        self.store.add("Pay rent", "high")
        self.store.add("Read", "low")
        self.store.add("Cook", priority="normal")

    def test_numbers_are_counted(self):
        self.assertEqual(self.store.add("Swim"), 5)

    def test_unknown_priority(self):
        with self.assertRaises(ValueError):
            self.store.add("Swim", "urgent")

    def test_tasks_are_ordered(self):
        self.assertEqual([task["number"] for task in self.store.tasks()], [2, 1, 4, 3])
        first = {"number": 2, "title": "Pay rent", "priority": "high", "done": False}
        self.assertEqual(self.store.tasks()[0], first)

    def test_done_tasks_come_last(self):
        self.store.complete(2)
        self.store.complete(3)
        self.assertEqual([task["number"] for task in self.store.tasks()], [1, 4, 2, 3])
        with self.assertRaises(KeyError):
            self.store.complete(9)

    def test_render(self):
        self.store.complete(1)
        lines = ["[ ] 2 Pay rent (high)", "[ ] 4 Cook", "[ ] 3 Read (low)", "[x] 1 Sleep"]
        self.assertEqual(render(self.store), "\n".join(lines))

    def test_render_nothing(self):
        self.assertEqual(render(Store()), "nothing to do")


if __name__ == "__main__":
    unittest.main()
