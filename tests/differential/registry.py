"""The table of specifications: operator -> the opsets it is drawn for and the function that draws one case."""

SPECS = {}


def spec(name, since=7, until=26):
    def add(draw):
        assert name not in SPECS, name
        SPECS[name] = (since, until, draw)
        return draw

    return add
