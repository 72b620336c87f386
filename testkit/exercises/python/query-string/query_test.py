import unittest

from query import parse


class ParseTest(unittest.TestCase):
    def test_plain_pairs(self):
        self.assertEqual(parse("name=Ada&lang=en"), {"name": "Ada", "lang": "en"})

    def test_repeated_keys_have_lists(self):
        self.assertEqual(parse("tag=a&x=1&tag=b&tag=c"), {"tag": ["a", "b", "c"], "x": "1"})

    def test_keys_and_values_are_decoded(self):
        self.assertEqual(parse("full+name=Ada%20Lovelace"), {"full name": "Ada Lovelace"})
        self.assertEqual(parse("city=K%C3%B6ln"), {"city": "Köln"})

    def test_separators_can_be_encoded(self):
        self.assertEqual(parse("a=1%262&b%3D=3"), {"a": "1&2", "b=": "3"})

    def test_a_key_without_value_is_true(self):
        self.assertEqual(parse("debug&a=1"), {"debug": True, "a": "1"})
        self.assertEqual(parse("a="), {"a": ""})

    def test_a_value_may_contain_equals_signs(self):
        self.assertEqual(parse("sum=1+1=2"), {"sum": "1 1=2"})

    def test_question_mark_and_empty_parts_are_ignored(self):
        self.assertEqual(parse("?a=1&&b=2&"), {"a": "1", "b": "2"})
        self.assertEqual(parse(""), {})


if __name__ == "__main__":
    unittest.main()
