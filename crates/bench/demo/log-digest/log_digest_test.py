import unittest

from log_digest import digest


class LogDigestTest(unittest.TestCase):
    def test_counts(self):
        lines = [
            "2024-05-01 12:00:00 INFO started",
            "2024-05-01 12:00:01 ERROR disk full",
            "2024-05-01 12:00:02 ERROR net down",
            "2024-05-01 12:00:03 ERROR net down",
        ]
        self.assertEqual(digest(lines), {"INFO": [("started", 1)], "ERROR": [("net down", 2), ("disk full", 1)]})

    def test_ties_keep_their_order(self):
        lines = ["2024-05-01 12:00:00 WARN z", "2024-05-01 12:00:00 WARN a"]
        self.assertEqual(digest(lines), {"WARN": [("z", 1), ("a", 1)]})

    def test_continued_messages(self):
        lines = ["2024-05-01 12:00:00 ERROR crash", "  at main", "  at start", "2024-05-01 12:00:01 INFO up"]
        expected = {"ERROR": [("crash\n  at main\n  at start", 1)], "INFO": [("up", 1)]}
        self.assertEqual(digest(lines), expected)

    def test_headless_lines(self):
        self.assertEqual(digest(["  at main", "2024-05-01 12:00:00 INFO a  b"]), {"INFO": [("a  b", 1)]})

    def test_empty(self):
        self.assertEqual(digest([]), {})


if __name__ == "__main__":
    unittest.main()
