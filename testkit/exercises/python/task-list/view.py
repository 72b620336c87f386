def render(store):
    return "\n".join(f"{task['number']} {task['title']}" for task in store.tasks())
