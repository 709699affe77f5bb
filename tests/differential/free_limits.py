"""Models that do something else at small extents than at larger ones."""

from free_forms import form


@form({"W": 8}, [(1,), (2,), (3,), (7,)])
def rows_of_three_of_each_length(b):
    """Longer rows are cut, shorter ones padded."""
    x = b.input("x", [2, "W"])
    b.node("Pad", [x, b.node("Concat", [b.i(0, 0, 0), b.node("Sub", [b.i(3), b.dim(x, 1)])], axis=0)])


@form({"W": 10}, [(4,), (5,), (7,), (12,), (20,)], 18)
def powers_under_windows(b):
    """Windows that the input fills in part, and pads that follow from its extent."""
    x = b.input("x", [2, 3, "W"])
    for options in ({"strides": [2], "ceil_mode": 1}, {"strides": [3], "pads": [1, 3], "ceil_mode": 1}, {"strides": [3], "auto_pad": "SAME_LOWER"}):
        b.node("LpPool", [x], kernel_shape=[5], **options)


@form({"W": 16, "K": 5}, [(3, 2), (40, 20), (4, 4)])
def rows_and_then_windows(b):
    """Of what is given one after the other the first is too short, or the second too long, for what the other was before."""
    x, w = b.input("x", [1, 1, "W"]), b.input("w", [1, 1, "K"])
    b.node("Conv", [x, w])


@form({"W": 16, "K": 5}, [(3, 2), (40, 20)])
def windows_and_then_rows(b):
    w, x = b.input("w", [1, 1, "K"]), b.input("x", [1, 1, "W"])
    b.node("Conv", [x, w])
