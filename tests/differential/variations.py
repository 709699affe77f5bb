"""How a case is varied, whatever framework it is of: a text over named inputs, of which some numbers, types and extents are other ones.
The framework says which variations mean something.
"""

import re

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("int64", "int32", "int16", "int8", "uint8")
NUMBER = re.compile(r"(?<![\w.'])-?\d+(?![\w.])")
NAME = re.compile(r"[a-z_][a-z_0-9]*")


def other_type(draw, dtype):
    if dtype in FLOATS:
        return draw.choice((*FLOATS, "float32", "float64", *INTS, "bool"))
    if dtype in INTS:
        return draw.choice((*INTS, "int64", "float32", "bool"))
    return draw.choice(("bool", "bool", "uint8", "float32", "int64"))


def with_other_numbers(draw, text):
    """One or two of its small whole numbers are others."""
    places = [each for each in NUMBER.finditer(text) if len(each[0]) < 4]
    for place in draw.sample(places, min(len(places), draw.choice((1, 1, 2)))):
        changed = text[:place.start()] + str(draw.randint(-3, 4)) + text[place.end():]
        text = changed if len(changed) - len(text) == 0 or len(places) == 1 else text
    return text


def with_other_words(draw, text, groups, chance):
    """Some of the words stand for others of their group."""
    for group in groups:
        found = re.compile("|".join(re.escape(word) for word in group))
        text = found.sub(lambda word, group=group: draw.choice(group) if draw.random() < chance else word[0], text)
    return text


def with_other_types(draw, rows):
    """All float32 inputs are of another type, or some inputs are."""
    other = draw.random() < 0.5 and other_type(draw, "float32")
    for row in rows.values():
        if other and row[0] == "float32":
            row[0] = other
        elif not other and draw.random() < 0.6:
            row[0] = other_type(draw, row[0])


def with_other_extents(draw, rows, kind):
    """Changes extents in place: `extent` one everywhere, `scalars` no dims, `ones` some of 1, `free`: gives an extent whose axes are free."""
    extents = sorted({extent for row in rows.values() for extent in row[1]})
    if kind == "extent" and extents:
        old, new = draw.choice(extents), draw.choice((0, 0, 1, 1, 2, 7, 33))
        for row in rows.values():
            row[1] = [new if each == old else each for each in row[1]]
    elif kind == "scalars":
        for row in rows.values():
            if draw.random() < 0.7:
                row[1] = []
    elif kind == "ones":
        for row in rows.values():
            row[1] = [1 if draw.random() < 0.25 else each for each in row[1]]
    elif kind == "free" and extents:
        return draw.choice([each for each in extents if each > 1] or [None])
    return None


def rows_of(text, inputs):
    """What of the inputs the text names, as lists of type, shape, least and greatest number."""
    names = set(NAME.findall(text))
    return {name: list(row) for name, row in inputs.items() if name in names}


def cases_of(texts, seed, count, varied, is_taken):
    """Cases of texts, `count` of each, that the framework takes: `varied(text, seed, turn)` makes one, of which `is_taken` says it."""
    for index, text in enumerate(texts):
        for turn in range(count):
            try:
                case = varied(text, seed * 1_000_003 + index * 1009 + turn, turn)
            except SyntaxError:
                continue
            if is_taken(case):
                yield case
