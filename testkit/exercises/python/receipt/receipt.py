def receipt(items):
    lines = []
    for name, quantity, cents in items:
        lines.append(f"{quantity} x {name}: {quantity * cents / 100:.2f}")
    return "\n".join(lines)
