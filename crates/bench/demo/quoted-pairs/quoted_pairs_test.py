import unittest

from quoted_pairs import parse


class QuotedPairsTest(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(parse("name=Ada; year = 1815 ;"), {"name": "Ada", "year": "1815"})

    def test_empty(self):
        self.assertEqual(parse("  "), {})
        self.assertEqual(parse("a=;b="), {"a": "", "b": ""})

    def test_quoted(self):
        self.assertEqual(parse(r'note="a; \"b\"" ; next=x'), {"note": 'a; "b"', "next": "x"})

    def test_backslashes(self):
        self.assertEqual(parse(r'path="C:\\temp\\"'), {"path": "C:\\temp\\"})

    def test_spaces_in_quotes(self):
        self.assertEqual(parse('a="  "'), {"a": "  "})

    def test_plain_with_spaces(self):
        self.assertEqual(parse("a=one two"), {"a": "one two"})

    def test_mistakes(self):
        for text in ["a", "=b", "a b=c", 'a="x', 'a="x"y', 'a=x"y"', "a=1;a=2", ";", "a=1;;b=2", r'a="\n"']:
            with self.subTest(text), self.assertRaises(ValueError):
                parse(text)


if __name__ == "__main__":
    unittest.main()
