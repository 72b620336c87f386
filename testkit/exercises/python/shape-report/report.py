from shapes import Rectangle, Square


def describe(shape):
    if isinstance(shape, Square):
        return f"square {shape.width}: area {shape.area():.2f}"
    if isinstance(shape, Rectangle):
        return f"rectangle {shape.width} x {shape.height}: area {shape.area():.2f}"
    raise TypeError("unknown shape")


def summary(shapes):
    total = sum(shape.area() for shape in shapes)
    return f"{len(shapes)} shapes, area {total:.2f}"
