import unittest

from build_order import build_order


class BuildOrderTest(unittest.TestCase):
    def test_chain(self):
        self.assertEqual(build_order({"app": ["lib"], "lib": ["core"]}), ["core", "lib", "app"])

    def test_alphabet_where_free(self):
        self.assertEqual(build_order({"b": [], "a": [], "c": ["b"]}), ["a", "b", "c"])

    def test_diamond(self):
        needs = {"d": ["c", "b"], "b": ["a"], "c": ["a"]}
        self.assertEqual(build_order(needs), ["a", "b", "c", "d"])

    def test_free_after_unlock(self):
        self.assertEqual(build_order({"a": ["z"], "m": []}), ["m", "z", "a"])

    def test_circle(self):
        with self.assertRaises(ValueError) as caught:
            build_order({"c": ["a"], "a": ["b"], "b": ["c"], "x": ["a"]})
        self.assertEqual(str(caught.exception), "a -> b -> c -> a")

    def test_own_circle(self):
        with self.assertRaises(ValueError) as caught:
            build_order({"a": ["a"]})
        self.assertEqual(str(caught.exception), "a -> a")


if __name__ == "__main__":
    unittest.main()
