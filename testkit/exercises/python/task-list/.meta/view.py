def line(task):
    mark = "x" if task["done"] else " "
    priority = "" if task["priority"] == "normal" else f" ({task['priority']})"
    return f"[{mark}] {task['number']} {task['title']}{priority}"


def render(store):
    return "\n".join(line(task) for task in store.tasks()) or "nothing to do"
