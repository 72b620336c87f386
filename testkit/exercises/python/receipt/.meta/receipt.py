def receipt(items, discounts=None):
    lines = []
    total = 0
    for name, quantity, cents in items:
        price = quantity * cents
        total += price
        lines.append(f"{quantity} x {name}: {price / 100:.2f}")
        percent = (discounts or {}).get(name)
        if percent:
            discount = price * percent // 100
            total -= discount
            lines.append(f"  {percent} % off: -{discount / 100:.2f}")
    lines.append(f"Total: {total / 100:.2f}")
    return "\n".join(lines)
