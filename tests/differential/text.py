"""Operators on strings, and estimators whose labels are strings."""

import numpy as np
from builder import Skip
from contrib import ML, tree
from registry import spec

WORDS = np.array(["", "a", "b", "ab", "Zebra", "zebra", "öl", "two words", "1.5", "-3", "cat", "dog", "日本"])


def words(b, shape, constant=0.1):
    return b.given(WORDS[b.rng.integers(len(WORDS), size=tuple(shape))], constant)


@spec("text.Moves", 13, 24)
def moves(b):
    shape = b.shape(1, 3, empty=0, largest=5)
    rank = len(shape)
    op = b.pick(["Transpose", "Gather", "Concat", "Slice", "Tile", "Unsqueeze", "Flatten", "Identity", "Where", "Equal", "Expand", "Split", "Shape", "Pad"])
    x = words(b, shape, 0)
    if op == "Transpose":
        b.node(op, [x], perm=[int(p) for p in b.rng.permutation(rank)])
    elif op == "Gather":
        b.node(op, [x, b.given(b.rng.integers(0, shape[-1], [2]))], axis=-1)
    elif op == "Concat":
        b.node(op, [x, words(b, shape), x], axis=b.axis(rank))
    elif op == "Slice":
        b.node(op, [x, b.ints([-1]), b.ints([-99]), b.ints([0]), b.ints([-1])])
    elif op == "Tile":
        b.node(op, [x, b.ints([2] * rank)])
    elif op == "Unsqueeze":
        b.node(op, [x, b.ints([0])])
    elif op == "Where":
        b.node(op, [b.x(shape, "b1"), x, words(b, shape)])
    elif op == "Equal":
        if b.opset < 19:
            raise Skip
        b.node(op, [x, words(b, b.broadcast(shape))])
    elif op == "Expand":
        b.node(op, [x, b.ints([2] + shape)])
    elif op == "Split":
        if b.opset >= 18:
            raise Skip
        b.node(op, [x], 1, axis=0)
    elif op == "Pad":
        raise Skip
    else:
        b.node(op, [x])


@spec("text.Strings", 20, 24)
def strings(b):
    shape = b.shape(1, 2, empty=0, largest=5)
    op = b.pick(["StringConcat", "StringSplit", "RegexFullMatch", "StringNormalizer", "Cast", "Unique"])
    if op == "StringConcat":
        b.node(op, [words(b, shape), words(b, b.broadcast(shape))])
    elif op == "StringSplit":
        b.node(op, [words(b, shape, 0)], 2, **b.some(delimiter=b.pick([" ", "a"]), maxsplit=b.int(1, 2)))
    elif op == "RegexFullMatch":
        b.node(op, [words(b, shape, 0)], pattern=b.pick(["[a-z]+", ".*o.*", "", r"-?\\d+"]))
    elif op == "StringNormalizer":
        b.node(op, [words(b, [b.int(1, 5)], 0)], **b.some(case_change_action=b.pick(["LOWER", "UPPER", "NONE"]), is_case_sensitive=b.int(0, 1)), stopwords=["cat", "a"])
    elif op == "Cast":
        b.node(op, [b.given(np.array(["1.5", "-3", "7", "1e3"])[b.rng.integers(4, size=tuple(shape))], 0)], to=1)
    else:
        b.node(op, [words(b, shape, 0)], 4, **b.some(sorted=b.int(0, 1)))


@spec("text.Estimators", 13, 22)
def estimators(b):
    n, c, classes = b.int(1, 5), b.int(1, 4), b.int(3, 4)
    labels = ["cat", "dog", "öl", "zebra"][:classes]
    op = b.pick(["LinearClassifier", "TreeEnsembleClassifier", "LabelEncoder", "OneHotEncoder", "CategoryMapper", "TfIdf"])
    if op == "LinearClassifier":
        b.node(op, [b.x([n, c])], 2, domain=ML, coefficients=b.rng.normal(size=c * classes).tolist(), intercepts=b.rng.normal(size=classes).tolist(), classlabels_strings=labels)
    elif op == "TreeEnsembleClassifier":
        b.node(op, [b.x([n, 4])], 2, domain=ML, classlabels_strings=labels, **tree(b, "", classes, True))
    elif op == "LabelEncoder":
        kind = b.pick(["int64s", "floats", "strings"])
        values = {"int64s": [1, 2, 3], "floats": [0.5, 1.5, 2.5], "strings": ["x", "yy", ""]}[kind]
        b.node(op, [words(b, b.shape(1, 2, empty=0, largest=5), 0)], domain=ML, keys_strings=["cat", "dog", "öl"], **{f"values_{kind}": values})
    elif op == "OneHotEncoder":
        b.node(op, [words(b, b.shape(1, 2, empty=0, largest=5), 0)], domain=ML, cats_strings=["cat", "dog", ""], zeros=1)
    elif op == "CategoryMapper":
        b.node(op, [words(b, b.shape(1, 2, empty=0, largest=5), 0)], domain=ML, cats_strings=["cat", "dog"], cats_int64s=[5, 6], **b.some(default_int64=-7))
    else:
        b.node("TfIdfVectorizer", [words(b, [b.int(1, 6)], 0)], max_gram_length=2, max_skip_count=b.int(0, 1), min_gram_length=1, mode=b.pick(["TF", "IDF", "TFIDF"]),
               ngram_counts=[0, 3], ngram_indexes=[0, 1, 2, 3], pool_strings=["a", "cat", "dog", "cat", "dog"], weights=[1.0, 0.5, 2.0, 3.0])
