import unittest

from report import describe, summary
from shapes import Rectangle, Square, Triangle


class ShapeReportTest(unittest.TestCase):
    def test_triangle(self):
        triangle = Triangle(3, 4, 5)
        self.assertAlmostEqual(triangle.area(), 6)
        self.assertEqual(triangle.perimeter(), 12)

    def test_impossible_triangles(self):
        for sides in [(1, 2, 3), (1, 5, 2), (9, 1, 1)]:
            with self.assertRaises(ValueError):
                Triangle(*sides)

    def test_descriptions(self):
        self.assertEqual(describe(Square(2)), "square 2: area 4.00")
        self.assertEqual(describe(Rectangle(2, 3)), "rectangle 2 x 3: area 6.00")
        self.assertEqual(describe(Triangle(3, 4, 5)), "triangle 3 x 4 x 5: area 6.00")
        with self.assertRaises(TypeError):
            describe("circle")

    def test_summary(self):
        shapes = [Square(3), Rectangle(3, 3), Triangle(3, 4, 5)]
        self.assertEqual(summary(shapes), "3 shapes, area 24.00, perimeter 36.00")
        self.assertEqual(summary([Square(1)]), "1 shape, area 1.00, perimeter 4.00")
        self.assertEqual(summary([]), "0 shapes, area 0.00, perimeter 0.00")


if __name__ == "__main__":
    unittest.main()
