"""Models with loops that hand on what grows, and lists, each beside what numpy makes of its inputs."""

import numpy as np
import onnx
from loop_models import BOOL, FLOAT, INT64, Body, Builder, helper, loop_body, many, model


def growing():
    """What is handed on gets longer, as often as an input says."""
    b = Builder([])
    body = loop_body(("v", FLOAT, [None]))
    graph = body.graph([(body.add("Identity", [body.inputs[1][0]]), BOOL), (body.add("Concat", ["v", "x"], axis=0), FLOAT)])
    return model(b, [(many(b, "Loop", ["m", "", "x"], 1, body=graph)[0], FLOAT)], [("m", INT64, []), ("x", FLOAT, [2])])


def uneven():
    """What is handed on gets longer by as much as data says, until it is as long as an input says."""
    b = Builder([])
    body = loop_body(("v", FLOAT, [None]))
    last = body.add("Gather", ["v", np.int64(-1)], axis=0)
    more = body.add("Add", [body.add("Compress", ["x", body.add("Less", ["x", last])], axis=0), np.float32(0.25)])
    after = body.add("Concat", ["v", more, body.add("Mul", [body.add("Unsqueeze", [last, body.ints(0)]), np.float32(0.9)])], axis=0)
    length = body.add("Squeeze", [body.add("Shape", [after])])
    graph = body.graph([(body.add("Less", [length, "n"]), BOOL), (after, FLOAT)])
    return model(b, [(many(b, "Loop", ["", "", "x"], 1, body=graph)[0], FLOAT)], [("n", INT64, []), ("x", FLOAT, [3])])


def uneven_of(n, x):
    v = x
    while True:
        v = np.concatenate([v, x[x < v[-1]] + np.float32(0.25), v[-1:] * np.float32(0.9)])
        if not len(v) < n:
            return [v]


def doubled(most):
    """What is handed on gets longer by more in each iteration."""
    b = Builder([])
    body = loop_body(("v", FLOAT, [None]))
    graph = body.graph([(body.add("Identity", [body.inputs[1][0]]), BOOL), (body.add("Concat", ["v", "v"], axis=0), FLOAT)])
    trips = "m" if most is None else b.add("Min", ["m", np.int64(most)])
    return model(b, [(many(b, "Loop", [trips, "", "x"], 1, body=graph)[0], FLOAT)], [("m", INT64, []), ("x", FLOAT, [2])])


def listed():
    """A list as a result, and the element at a place that an input says."""
    b = Builder([])
    body = loop_body()
    longer = body.add("SequenceInsert", ["list", body.add("Mul", ["x", body.add("Cast", [body.inputs[0][0]], to=FLOAT)])])
    graph = body.graph([(body.add("Identity", [body.inputs[1][0]]), BOOL), (longer, FLOAT)])
    graph.input.append(helper.make_tensor_sequence_value_info("list", FLOAT, None))
    graph.output[1].CopyFrom(helper.make_tensor_sequence_value_info(longer, FLOAT, None))
    (all_,) = many(b, "Loop", [b.add("Min", ["m", np.int64(9)]), "", b.add("SequenceEmpty", [])], 1, body=graph)
    made = onnx.load_model_from_string(model(b, [(b.add("SequenceAt", [all_, "place"]), FLOAT), (all_, FLOAT)],
                                             [("x", FLOAT, [2]), ("m", INT64, []), ("place", INT64, [])]))
    made.graph.output[1].CopyFrom(helper.make_tensor_sequence_value_info(all_, FLOAT, None))
    return made.SerializeToString()


def listed_of(x, m, place):
    rows = [x * np.float32(i) for i in range(int(m))]
    return [rows[int(place)], np.stack(rows)]


def cached(opset=16, most=12):
    """Two values of one length that grow side by side, read together: a cache of keys and values and what it is asked."""
    b = Builder([])
    body = loop_body(("keys", FLOAT, [1, None, 3]), ("values", FLOAT, [1, None, 2]), ("q", FLOAT, [1, 1, 3]))
    keys = body.add("Concat", ["keys", "q"], axis=1)
    values = body.add("Concat", ["values", body.add("Slice", ["q", body.ints(0), body.ints(2), body.ints(2)])], axis=1)
    weights = body.add("Softmax", [body.add("MatMul", ["q", body.add("Transpose", [keys], perm=[0, 2, 1])])], axis=2)
    seen = body.add("MatMul", [weights, values])
    after = body.add("Tanh", [body.add("Add", [body.add("Concat", [seen, body.add("Slice", ["q", body.ints(0), body.ints(1), body.ints(2)])], axis=2), "q"])])
    size = body.add("ReduceSum", [body.add("Abs", [seen])], keepdims=0)
    graph = body.graph([(body.add("Less", [size, "bound"]), BOOL), (keys, FLOAT), (values, FLOAT), (after, FLOAT), (seen, FLOAT)])
    results = many(b, "Loop", [np.int64(most), "", "k", "v", "x"], 4, body=graph)
    total = b.add("ReduceSum", [results[0]], keepdims=0)
    return model(b, [(name, FLOAT) for name in (*results, total)],
                 [("k", FLOAT, [1, 2, 3]), ("v", FLOAT, [1, 2, 2]), ("x", FLOAT, [1, 1, 3]), ("bound", FLOAT, [])], opset)


def cached_of(k, v, x, bound, most=12):
    q, seen = x, []
    for _ in range(most):
        k, v = np.concatenate([k, q], 1), np.concatenate([v, q[:, :, :2]], 1)
        scores = q @ k.transpose(0, 2, 1)
        weights = np.exp(scores - scores.max())
        out = weights / weights.sum() @ v
        q = np.tanh(np.concatenate([out, q[:, :, :1]], 2) + q)
        seen.append(out)
        if not np.abs(out).sum() < bound:
            break
    return [k, v, q, np.stack(seen), k.sum()]


def heads(trips=None, ends=False, room=0):
    """Keys and values of two heads, of which each iteration appends those of a token and asks all; the keys before are read too. How
    often is a number or an input ("m"), or, where it `ends`, less by what comes out. `room`: tokens there are before."""
    b = Builder([])
    body = loop_body(("keys", FLOAT, [1, 2, None, 3]), ("values", FLOAT, [2, None, 3]), ("q", FLOAT, [1, 2, 1, 3]))
    before = body.add("ReduceMean", ["keys"], axes=[2], keepdims=1) if room else "q"
    keys = body.add("Concat", ["keys", body.add("Tanh", ["q"])], axis=2)
    values = body.add("Concat", ["values", body.add("Squeeze", ["q", body.ints(0)])], axis=1)
    scores = body.add("MatMul", ["q", body.add("Transpose", [keys], perm=[0, 1, 3, 2])])
    seen = body.add("MatMul", [body.add("Softmax", [scores], axis=3), values])
    after = body.add("Sin", [body.add("Add", [body.add("Add", [seen, before]), np.float32(0.3)])])
    size = body.add("ReduceSum", [after], keepdims=0)
    goes_on = body.add("Less", [size, "bound"]) if ends else body.add("Identity", [body.inputs[1][0]])
    graph = body.graph([(goes_on, BOOL), (keys, FLOAT), (values, FLOAT), (after, FLOAT), (size, FLOAT)])
    results = many(b, "Loop", ["m" if trips is None else np.int64(trips), "", "k", "v", "x"], 4, body=graph)
    inputs = [("k", FLOAT, [1, 2, room, 3]), ("v", FLOAT, [2, room, 3]), ("x", FLOAT, [1, 2, 1, 3]), *([("bound", FLOAT, [])] if ends else []),
              *([("m", INT64, [])] if trips is None else [])]
    return model(b, [(name, FLOAT) for name in results], inputs)


def heads_of(k, v, x, m, bound=np.inf):
    q, sizes, room = x, [], v.shape[1]
    for _ in range(int(m)):
        before = k.mean(2, keepdims=True) if room else q
        k, v = np.concatenate([k, np.tanh(q)], 2), np.concatenate([v, q[0]], 1)
        scores = q @ k.transpose(0, 1, 3, 2)
        weights = np.exp(scores - scores.max(3, keepdims=True))
        q = np.sin(weights / weights.sum(3, keepdims=True) @ v + before + np.float32(0.3))
        sizes.append(q.sum())
        if not sizes[-1] < bound:
            break
    return [k, v, q, np.array(sizes, np.float32)]


VOCABULARY = (np.random.default_rng(4).standard_normal((7, 7)) * 2).astype(np.float32)


def greedy(most):
    """Appends the likeliest token until it is the last of the vocabulary, at most so often; None: until there are as many as an input says."""
    b = Builder([])
    body = loop_body(("tokens", INT64, [1, None]))
    last = body.add("Gather", ["tokens", np.int64(-1)], axis=1)
    history = body.add("ReduceMean", [body.add("Gather", [b.constant(VOCABULARY), "tokens"], axis=0)], axes=[1], keepdims=0)
    scores = body.add("Add", [body.add("Gather", [b.constant(VOCABULARY), last], axis=0), history])
    token = body.add("ArgMax", [scores], axis=1, keepdims=1)
    longer = body.add("Concat", ["tokens", token], axis=1)
    goes_on = body.add("Not", [body.add("Equal", [body.add("Squeeze", [token]), np.int64(6)])])
    if most is None:
        goes_on = body.add("Less", [body.add("Gather", [body.add("Shape", [longer]), np.int64(1)]), "limit"])
    graph = body.graph([(goes_on, BOOL), (longer, INT64)])
    (result,) = many(b, "Loop", ["" if most is None else np.int64(most), "", "prompt"], 1, body=graph)
    return model(b, [(result, INT64)], [("prompt", INT64, [1, "N"]), *([("limit", INT64, [])] if most is None else [])])


def greedy_of(prompt, most, last=6):
    tokens = list(prompt[0])
    for _ in range(most):
        scores = VOCABULARY[tokens[-1]] + VOCABULARY[tokens].mean(0)
        tokens.append(int(scores.argmax()))
        if tokens[-1] == last:
            break
    return [np.array([tokens])]


def appended(count=None, new_axis=0, from_list=False):
    """A list to which each iteration appends; how many there are an input, a number or an extent says."""
    b = Builder([])
    info = helper.make_tensor_sequence_value_info("list", FLOAT, None)
    body = loop_body(("v", FLOAT, [2, 2]))
    after = body.add("Tanh", [body.add("Add", [body.add("Mul", ["v", np.float32(1.5)]), np.float32(0.1)])])
    longer = body.add("SequenceInsert", ["list", after])
    graph = body.graph([(body.add("Identity", [body.inputs[1][0]]), BOOL), (after, FLOAT), (longer, FLOAT)])
    graph.input.append(info)
    graph.output[2].CopyFrom(helper.make_tensor_sequence_value_info(longer, FLOAT, None))
    first = b.add("SequenceConstruct", ["x", b.add("Neg", ["x"])]) if from_list else b.add("SequenceEmpty", [])
    if count is None:
        trips = b.add("Min", ["m", np.int64(20)])
    elif count == "rows":
        trips = b.add("Squeeze", [b.add("Slice", [b.add("Shape", ["y"]), b.ints(0), b.ints(1)])])
    else:
        trips = np.int64(count)
    result, all_ = many(b, "Loop", [trips, "", "x", first], 2, body=graph)
    joined = b.add("ConcatFromSequence", [all_], axis=1, new_axis=new_axis)
    last = b.add("SequenceAt", [all_, np.int64(-1)])
    length = b.add("SequenceLength", [all_])
    inputs = [("x", FLOAT, [2, 2])]
    if count is None:
        inputs.append(("m", INT64, []))
    if count == "rows":
        inputs.append(("y", FLOAT, ["T"]))
        joined = b.add("Add", [joined, b.add("ReduceSum", ["y"], keepdims=0)])
    return model(b, [(result, FLOAT), (joined, FLOAT), (last, FLOAT), (length, INT64)], inputs)


def appended_of(x, count, new_axis=0, from_list=False):
    v, parts = x, [x, -x] if from_list else []
    for _ in range(int(count)):
        v = np.tanh(v * np.float32(1.5) + np.float32(0.1))
        parts.append(v)
    joined = np.stack(parts, 1) if new_axis else np.concatenate(parts, 1)
    return [v, joined, parts[-1], np.int64(len(parts))]


def collected(trips=None):
    """What iterations append along two axes and do not look at, beside what they hand on and a part of each."""
    b = Builder([])
    body = loop_body(("rows", FLOAT, [None, 2]), ("v", FLOAT, [2]), ("columns", FLOAT, [2, None, 1]))
    after = body.add("Tanh", [body.add("Add", ["v", np.float32(0.1)])])
    column = body.add("Unsqueeze", [after, body.ints(1, 2)])
    rows = body.add("Concat", ["rows", body.add("Unsqueeze", ["v", body.ints(0)])], axis=0)
    columns = body.add("Concat", ["columns", column, body.add("Neg", [column])], axis=-2)
    total = body.add("ReduceSum", [after], keepdims=0)
    graph = body.graph([(body.add("Less", [total, "bound"]), BOOL), (rows, FLOAT), (after, FLOAT), (columns, FLOAT), (total, FLOAT)])
    results = many(b, "Loop", ["m" if trips is None else np.int64(trips), "", "r", "x", "c"], 4, body=graph)
    inputs = [("r", FLOAT, ["R", 2]), ("x", FLOAT, [2]), ("c", FLOAT, [2, 1, 1]), ("bound", FLOAT, [])]
    return model(b, [(name, FLOAT) for name in results], inputs + ([("m", INT64, [])] if trips is None else []))


def collected_of(r, x, c, bound, m):
    totals = []
    for _ in range(int(m)):
        r, x = np.concatenate([r, x[None]]), np.tanh(x + np.float32(0.1))
        c = np.concatenate([c, x[:, None, None], -x[:, None, None]], -2)
        totals.append(x.sum())
        if not totals[-1] < bound:
            break
    return [r, x, c, np.array(totals, np.float32)]


def collected_of_another():
    """To one value that is handed on the other is appended."""
    b = Builder([])
    body = loop_body(("a", FLOAT, [None]), ("all", FLOAT, [None]))
    longer = body.add("Concat", ["a", body.add("Slice", ["w", body.ints(0), body.ints(1)])], axis=0)
    graph = body.graph([(body.add("Identity", [body.inputs[1][0]]), BOOL), (longer, FLOAT),
                        (body.add("Concat", ["all", "a"], axis=0), FLOAT)])
    results = many(b, "Loop", [np.int64(5), "", "x", "w"], 2, body=graph)
    return model(b, [(name, FLOAT) for name in results], [("x", FLOAT, [2]), ("w", FLOAT, [3])])


def collected_of_another_of(x, w):
    a, all_ = x, w
    for _ in range(5):
        a, all_ = np.concatenate([a, w[:1]]), np.concatenate([all_, a])
    return [a, all_]


def collected_unevenly():
    """As many elements are appended as data says."""
    b = Builder([])
    body = loop_body(("all", FLOAT, [None]), ("v", FLOAT, [4]))
    after = body.add("Mul", ["v", np.float32(0.75)])
    more = body.add("Compress", [after, body.add("Less", [after, np.float32(1)])], axis=0)
    graph = body.graph([(body.add("Identity", [body.inputs[1][0]]), BOOL), (body.add("Concat", ["all", more], axis=0), FLOAT),
                        (after, FLOAT)])
    results = many(b, "Loop", [b.add("Min", ["m", np.int64(9)]), "", "x", "x"], 2, body=graph)
    return model(b, [(name, FLOAT) for name in results], [("x", FLOAT, [4]), ("m", INT64, [])])


def collected_unevenly_of(x, m):
    all_, v = x, x
    for _ in range(int(m)):
        v = v * np.float32(0.75)
        all_ = np.concatenate([all_, v[v < 1]])
    return [all_, v]


def queue():
    """A list that some iterations make longer and others shorter: at places that data says."""
    b = Builder([])
    body = loop_body(("v", FLOAT, [2]))
    length = body.add("SequenceLength", ["list"])
    large = body.add("And", [body.add("Greater", [body.add("ReduceSum", ["v"], keepdims=0), np.float32(0)]),
                             body.add("Greater", [length, np.int64(1)])])
    taken, added = Body([]), Body([])
    yes = taken.graph([(taken.add("SequenceErase", ["list", np.int64(0)]), FLOAT), (taken.add("SequenceAt", ["list", np.int64(1)]), FLOAT)])
    no = added.graph([(added.add("SequenceInsert", ["list", "v", np.int64(-1)]), FLOAT), (added.add("Sub", ["v", "w"]), FLOAT)])
    for side in (yes, no):
        side.output[0].CopyFrom(helper.make_tensor_sequence_value_info(side.output[0].name, FLOAT, None))
    list_, found = many(body, "If", [large], 2, then_branch=yes, else_branch=no)
    after = body.add("Add", [body.add("Mul", [found, np.float32(-0.75)]), "w"])
    graph = body.graph([(body.add("Identity", [body.inputs[1][0]]), BOOL), (after, FLOAT), (list_, FLOAT)])
    graph.input.append(helper.make_tensor_sequence_value_info("list", FLOAT, None))
    graph.output[2].CopyFrom(helper.make_tensor_sequence_value_info(list_, FLOAT, None))
    trips = b.add("Min", ["m", np.int64(20)])
    result, all_ = many(b, "Loop", [trips, "", "x", b.add("SequenceConstruct", ["x"])], 2, body=graph)
    return model(b, [(result, FLOAT), (b.add("ConcatFromSequence", [all_], axis=0, new_axis=1), FLOAT)],
                 [("x", FLOAT, [2]), ("w", FLOAT, [2]), ("m", INT64, [])])


def queue_of(x, w, m):
    v, parts = x, [x]
    for _ in range(int(m)):
        if v.sum() > 0 and len(parts) > 1:
            found, parts = parts[1], parts[1:]
        else:
            parts = parts[:-1] + [v] + parts[-1:]
            found = v - w
        v = found * np.float32(-0.75) + w
    return [v, np.stack(parts)]


def mapped():
    """What a body makes of each element of a list that a loop has made."""
    b = Builder([])
    body = loop_body()
    body.inputs = body.inputs[:2]
    row = body.add("Add", ["x", body.add("Cast", [body.inputs[0][0]], to=FLOAT)])
    longer = body.add("SequenceInsert", ["list", row])
    graph = body.graph([(body.add("Identity", [body.inputs[1][0]]), BOOL), (longer, FLOAT)])
    graph.input.append(helper.make_tensor_sequence_value_info("list", FLOAT, None))
    graph.output[1].CopyFrom(helper.make_tensor_sequence_value_info(longer, FLOAT, None))
    (all_,) = many(b, "Loop", [b.add("Min", ["m", np.int64(9)]), "", b.add("SequenceEmpty", [])], 1, body=graph)
    each = Body([("element", FLOAT, [2]), ("shift", FLOAT, [2])])
    made = each.graph([(each.add("Mul", ["element", "shift"]), FLOAT), (each.add("ReduceSum", ["element"], keepdims=0), FLOAT)])
    products, sums = many(b, "SequenceMap", [all_, "x"], 2, body=made)
    return model(b, [(b.add("ConcatFromSequence", [products], axis=0), FLOAT), (b.add("ConcatFromSequence", [sums], axis=0, new_axis=1), FLOAT)],
                 [("x", FLOAT, [2]), ("m", INT64, [])], 17)


def mapped_of(x, m):
    rows = [x + np.float32(i) for i in range(min(int(m), 9))]
    return [np.concatenate([row * x for row in rows]), np.stack([row.sum() for row in rows])]


def found():
    """An optional value that is nothing until an iteration finds one, and the first found stays."""
    b = Builder([])
    body = loop_body()
    value = body.add("Gather", ["x", body.inputs[0][0]], axis=0)
    empty = body.add("Not", [body.add("OptionalHasElement", ["best"])])
    fits = body.add("And", [empty, body.add("Greater", [body.add("ReduceSum", [value], keepdims=0), "bound"])])
    yes, no = Body([]), Body([])
    taken, kept = yes.add("Optional", [value]), no.add("Identity", ["best"])
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, None))
    info = lambda name: helper.make_value_info(name, optional)
    graphs = [yes.graph([(taken, FLOAT)]), no.graph([(kept, FLOAT)])]
    for graph, name in zip(graphs, (taken, kept), strict=True):
        graph.output[0].CopyFrom(info(name))
    (after,) = many(body, "If", [fits], 1, then_branch=graphs[0], else_branch=graphs[1])
    graph = body.graph([(body.add("Identity", [body.inputs[1][0]]), BOOL), (after, FLOAT)])
    graph.input.append(info("best"))
    graph.output[1].CopyFrom(info(after))
    nothing = b.add("Optional", [], type=helper.make_tensor_type_proto(FLOAT, None))
    (best,) = many(b, "Loop", ["m", "", nothing], 1, body=graph)
    has = b.add("OptionalHasElement", [best])
    yes, no = Body([]), Body([])
    got, none = yes.add("OptionalGetElement", [best]), no.add("Identity", ["otherwise"])
    (result,) = many(b, "If", [has], 1, then_branch=yes.graph([(got, FLOAT)]), else_branch=no.graph([(none, FLOAT)]))
    return model(b, [(has, BOOL), (result, FLOAT)],
                 [("m", INT64, []), ("x", FLOAT, [6, 2]), ("bound", FLOAT, []), ("otherwise", FLOAT, [2])], 18)


def found_of(m, x, bound, otherwise):
    best = next((row for row in x[:int(m)] if row.sum() > bound), None)
    return [np.bool_(best is not None), otherwise if best is None else best]
