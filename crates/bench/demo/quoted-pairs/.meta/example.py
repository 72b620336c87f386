import re

PAIR = re.compile(r'\s*(\w+)\s*=\s*(?:"((?:[^"\\]|\\["\\])*)"\s*|([^;"]*))(;|$)', re.ASCII)


def parse(text):
    found, at = {}, 0
    if not text.strip():
        return found
    while text[at:].strip():
        match = PAIR.match(text, at)
        if not match:
            raise ValueError(f"no pair at {at}")
        name, quoted, plain, _ = match.groups()
        if name in found:
            raise ValueError(f"{name} appears twice")
        found[name] = plain.strip() if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        at = match.end()
    return found
