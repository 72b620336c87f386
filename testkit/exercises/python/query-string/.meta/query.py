from urllib.parse import unquote_plus


def parse(query):
    result = {}
    for part in query.removeprefix("?").split("&"):
        if not part:
            continue
        key, equals, value = part.partition("=")
        key = unquote_plus(key)
        value = unquote_plus(value) if equals else True
        if key not in result:
            result[key] = value
        elif isinstance(result[key], list):
            result[key].append(value)
        else:
            result[key] = [result[key], value]
    return result
