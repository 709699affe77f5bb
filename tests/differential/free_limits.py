"""Models that do something else at small extents than at larger ones."""

from free_forms import form


@form({"W": 8}, [(1,), (2,), (3,), (7,)])
def rows_of_three_of_each_length(b):
    """Longer rows are cut, shorter ones padded."""
    x = b.input("x", [2, "W"])
    b.node("Pad", [x, b.node("Concat", [b.i(0, 0, 0), b.node("Sub", [b.i(3), b.dim(x, 1)])], axis=0)])
