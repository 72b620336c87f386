import unittest

from cache import Cache


class CacheTest(unittest.TestCase):
    def test_without_capacity_nothing_is_removed(self):
        cache = Cache()
        for number in range(1000):
            cache.put(number, -number)
        self.assertEqual((len(cache), cache.get(0)), (1000, 0))

    def test_the_oldest_entry_is_removed(self):
        cache = Cache(2)
        for key in "abc":
            cache.put(key, key.upper())
        self.assertEqual(("a" in cache, "b" in cache, "c" in cache), (False, True, True))
        self.assertEqual(len(cache), 2)

    def test_reading_counts_as_use(self):
        cache = Cache(2)
        cache.put("a", 1)
        cache.put("b", 2)
        self.assertEqual(cache.get("a"), 1)
        cache.put("c", 3)
        self.assertEqual(("a" in cache, "b" in cache), (True, False))

    def test_setting_counts_as_use(self):
        cache = Cache(2)
        cache.put("a", 1)
        cache.put("b", 2)
        cache.put("a", 9)
        cache.put("c", 3)
        self.assertEqual((cache.get("a"), "b" in cache), (9, False))

    def test_asking_whether_a_key_exists_is_no_use(self):
        cache = Cache(2)
        cache.put("a", 1)
        cache.put("b", 2)
        self.assertTrue("a" in cache)
        cache.put("c", 3)
        self.assertFalse("a" in cache)

    def test_missing_keys(self):
        cache = Cache(1)
        self.assertIsNone(cache.get("a"))
        self.assertEqual(cache.get("a", 7), 7)
        self.assertEqual(len(cache), 0)

    def test_none_is_a_value(self):
        cache = Cache(1)
        cache.put("a", None)
        self.assertIsNone(cache.get("a", 5))

    def test_capacity_must_be_positive(self):
        with self.assertRaises(ValueError):
            Cache(0)


if __name__ == "__main__":
    unittest.main()
