def build_order(needs):
    needs = {part: set(wanted) for part, wanted in needs.items()}
    for wanted in list(needs.values()):
        for part in wanted:
            needs.setdefault(part, set())
    order, done = [], set()
    while len(order) < len(needs):
        ready = sorted(part for part in needs if part not in done and needs[part] <= done)
        if not ready:
            raise ValueError(" -> ".join(circle({p: w - done for p, w in needs.items() if p not in done})))
        order.append(ready[0])
        done.add(ready[0])
    return order


def circle(needs):
    part, path = min(needs), []
    while part not in path:
        path.append(part)
        part = min(needs[part])
    path = path[path.index(part):]
    first = path.index(min(path))
    return path[first:] + path[:first] + [min(path)]
