import re


def columns(rows):
    if not rows:
        return ""
    width = max(len(row) for row in rows)
    rows = [row + [""] * (width - len(row)) for row in rows]
    cells = list(zip(*rows))
    widths = [max(len(cell) for cell in column) for column in cells]

    def is_number(column):
        filled = [cell for cell in column[1:] if cell]
        return bool(filled) and all(re.fullmatch(r"-?\d+", cell) for cell in filled)

    right = [is_number(column) for column in cells]

    def line(row):
        parts = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right)]
        return "  ".join(parts).rstrip()

    dashes = "  ".join("-" * width for width in widths)
    return "\n".join([line(rows[0]), dashes] + [line(row) for row in rows[1:]])
