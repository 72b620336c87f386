from shapes import Rectangle, Square, Triangle


def describe(shape):
    if isinstance(shape, Square):
        return f"square {shape.width}: area {shape.area():.2f}"
    if isinstance(shape, Rectangle):
        return f"rectangle {shape.width} x {shape.height}: area {shape.area():.2f}"
    if isinstance(shape, Triangle):
        return f"triangle {shape.a} x {shape.b} x {shape.c}: area {shape.area():.2f}"
    raise TypeError("unknown shape")


def summary(shapes):
    area = sum(shape.area() for shape in shapes)
    perimeter = sum(shape.perimeter() for shape in shapes)
    noun = "shape" if len(shapes) == 1 else "shapes"
    return f"{len(shapes)} {noun}, area {area:.2f}, perimeter {perimeter:.2f}"
