ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()


def below_hundred(n):
    if n < 20:
        return ONES[n]
    return TENS[n // 10] + (f"-{ONES[n % 10]}" if n % 10 else "")


def in_words(cents):
    if not 0 <= cents < 100000:
        raise ValueError("out of range")
    whole, rest = divmod(cents, 100)
    parts = [f"{ONES[whole // 100]} hundred"] if whole >= 100 else []
    if whole % 100 or not parts:
        parts.append(below_hundred(whole % 100))
    return f"{' '.join(parts)} and {rest:02}/100"
