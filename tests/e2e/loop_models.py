"""Models with loops, each beside what numpy makes of its inputs."""

import numpy as np
from free_dims_models import Builder
from onnx import TensorProto, helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Body(Builder):
    """A subgraph; its constants have names of their own, and outer values are read by name."""

    count = 0

    def __init__(self, inputs):
        super().__init__(inputs)
        Body.count += 1
        self.prefix = f"b{Body.count}."

    def constant(self, array):
        name = f"{self.prefix}c{len(self.constants)}"
        tensor = self.tensor(np.asarray(array))
        tensor.name = name
        self.constants.append(tensor)
        return name

    def add(self, op, inputs, **attributes):
        name = f"{self.prefix}{op.lower()}{len(self.nodes)}"
        names = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        self.nodes.append(helper.make_node(op, names, [name], name=name, **attributes))
        return name

    def graph(self, outputs):
        infos = [helper.make_tensor_value_info(n, t, s) for n, t, s in self.inputs]
        results = [helper.make_tensor_value_info(n, t, None) for n, t in outputs]
        return helper.make_graph(self.nodes, f"{self.prefix}body", infos, results, self.constants)


def loop_body(*carried):
    """A body with the number of its iteration in "i" and the carried (name, type, shape)."""
    own = Body.count + 1
    return Body([(f"i{own}", INT64, []), (f"go{own}", BOOL, []), *carried])


def many(b, op, inputs, count, **attributes):
    names = [f"{getattr(b, 'prefix', '')}{op.lower()}{len(b.nodes)}.{i}" for i in range(count)]
    given = [i if isinstance(i, str) else b.constant(i) for i in inputs]
    b.nodes.append(helper.make_node(op, given, names, name=names[0], **attributes))
    return names


def model(b, outputs, inputs, opset=16):
    """`outputs`: (name, type); `inputs`: (name, type, shape)."""
    infos = [helper.make_tensor_value_info(*i) for i in inputs]
    results = [helper.make_tensor_value_info(n, t, None) for n, t in outputs]
    made = helper.make_model(helper.make_graph(b.nodes, "g", infos, results, b.constants),
                             opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 8
    return made.SerializeToString()


def collatz():
    """How many steps a number takes to 1, and the largest on its way: what a run computes decides when it ends."""
    b = Builder([])
    body = loop_body(("steps", INT64, []), ("value", INT64, []), ("top", INT64, []))
    odd = body.add("Equal", [body.add("Mod", ["value", np.int64(2)]), np.int64(1)])
    up = body.add("Add", [body.add("Mul", ["value", np.int64(3)]), np.int64(1)])
    after = body.add("Where", [odd, up, body.add("Div", ["value", np.int64(2)])])
    graph = body.graph([(body.add("Greater", [after, np.int64(1)]), BOOL), (body.add("Add", ["steps", np.int64(1)]), INT64),
                        (after, INT64), (body.add("Max", ["top", after]), INT64)])
    results = many(b, "Loop", ["", b.add("Greater", ["n", np.int64(1)]), np.int64(0), "n", "n"], 3, body=graph)
    return model(b, [(name, INT64) for name in results], [("n", INT64, [])])


def collatz_of(n):
    value, steps, top = int(n), 0, int(n)
    while value > 1:
        value = value * 3 + 1 if value % 2 else value // 2
        steps, top = steps + 1, max(top, value)
    return [np.int64(steps), np.int64(value), np.int64(top)]


def newton(most):
    """Square roots until all change little, with the estimates on the way: as many as a run needs."""
    b = Builder([])
    body = loop_body(("root", FLOAT, [4]))
    after = body.add("Mul", [body.add("Add", ["root", body.add("Div", ["x", "root"])]), np.float32(0.5)])
    change = body.add("ReduceMax", [body.add("Abs", [body.add("Sub", [after, "root"])])], keepdims=0)
    graph = body.graph([(body.add("Greater", [change, np.float32(1e-3)]), BOOL), (after, FLOAT),
                        (body.add("Identity", [after]), FLOAT), (body.add("Identity", [body.inputs[0][0]]), INT64)])
    results = many(b, "Loop", [np.int64(most), "", "x"], 3, body=graph)
    return model(b, list(zip(results, (FLOAT, FLOAT, INT64))), [("x", FLOAT, [4])])


def newton_of(x, most):
    root, estimates = x, []
    for _ in range(most):
        after = (root + x / root) * np.float32(0.5)
        change, root = np.abs(after - root).max(), after
        estimates.append(root)
        if not change > 1e-3:
            break
    return [root, np.stack(estimates), np.arange(len(estimates))]


def repeated():
    """As many rounds as an input says; what the body reads of the graph around it stays."""
    b = Builder([])
    outer = b.add("Sqrt", [b.add("Abs", ["x"])])
    body = loop_body(("y", FLOAT, [3]), ("a", INT64, [2]), ("c", INT64, [2]), ("flag", BOOL, []))
    after = body.add("Add", [body.add("Mul", ["y", np.float32(0.5)]), outer])
    graph = body.graph([(body.add("Identity", [body.inputs[1][0]]), BOOL), (after, FLOAT), ("c", INT64),
                        (body.add("Add", ["a", "c"]), INT64), (body.add("Not", ["flag"]), BOOL)])
    results = many(b, "Loop", ["m", "", "x", np.array([0, 1]), np.array([1, 1]), np.bool_(True)], 4, body=graph)
    last = b.add("Add", [results[0], outer])
    return model(b, [(last, FLOAT), *zip(results[1:], (INT64, INT64, BOOL))], [("m", INT64, []), ("x", FLOAT, [3])])


def repeated_of(m, x):
    outer = np.sqrt(np.abs(x))
    y, a, c, flag = x, np.array([0, 1]), np.array([1, 1]), True
    for _ in range(int(m)):
        y, a, c, flag = y * np.float32(0.5) + outer, c, a + c, not flag
    return [y + outer, a, c, np.bool_(flag)]


def nested():
    """Rounds of a search that ends when data says so; the inner one reads what the outer one hands on."""
    b = Builder([])
    body = loop_body(("total", FLOAT, [2]), ("bound", FLOAT, []))
    inner = loop_body(("z", FLOAT, [2]))
    grown = inner.add("Add", ["z", inner.add("Abs", ["x"])])
    size = inner.add("ReduceSum", [inner.add("Abs", [grown])], keepdims=0)
    inner_graph = inner.graph([(inner.add("Less", [size, "bound"]), BOOL), (grown, FLOAT)])
    (found,) = many(body, "Loop", [np.int64(1000), "", "total"], 1, body=inner_graph)
    graph = body.graph([(body.add("Identity", [body.inputs[1][0]]), BOOL), (body.add("Mul", [found, np.float32(0.5)]), FLOAT),
                        (body.add("Add", ["bound", np.float32(1)]), FLOAT)])
    results = many(b, "Loop", ["m", "", "x", np.float32(5)], 2, body=graph)
    return model(b, [(name, FLOAT) for name in results], [("m", INT64, []), ("x", FLOAT, [2])])


def nested_of(m, x):
    total, bound = x, np.float32(5)
    for _ in range(int(m)):
        z = total
        for _ in range(1000):
            z = z + np.abs(x)
            if not np.abs(z).sum() < bound:
                break
        total, bound = z * np.float32(0.5), bound + np.float32(1)
    return [total, bound]


WEIGHTS = (np.random.default_rng(8).standard_normal((3, 3)) * 0.4).astype(np.float32)


def recurrence(length, axes=(0, 1), reverse=(0, 1), out_axes=(0, 1), out_reverse=(1, 0)):
    """A Scan of two inputs and two outputs, forward and from the end, with a float and a whole number handed on."""
    b = Builder([])
    body = Body([("h", FLOAT, [3]), ("n", INT64, []), ("p", FLOAT, [3]), ("q", FLOAT, [2])])
    mixed = body.add("MatMul", [body.add("Unsqueeze", ["h", body.ints(0)]), b.constant(WEIGHTS)])
    after = body.add("Tanh", [body.add("Add", [body.add("Squeeze", [mixed, body.ints(0)]), "p"])])
    number = body.add("Add", ["n", np.int64(1)])
    graph = body.graph([(after, FLOAT), (number, INT64), (body.add("Mul", [after, body.add("Cast", [number], to=FLOAT)]), FLOAT),
                        (body.add("Concat", ["q", body.add("Slice", [after, body.ints(0), body.ints(1)])], axis=0), FLOAT)])
    shapes = {0: lambda width: [length, width], 1: lambda width: [width, length]}
    results = many(b, "Scan", ["h0", np.int64(0), "x", "y"], 4, body=graph, num_scan_inputs=2, scan_input_axes=list(axes),
                   scan_input_directions=list(reverse), scan_output_axes=list(out_axes), scan_output_directions=list(out_reverse))
    return model(b, list(zip(results, (FLOAT, INT64, FLOAT, FLOAT))),
                 [("h0", FLOAT, [3]), ("x", FLOAT, shapes[axes[0]](3)), ("y", FLOAT, shapes[axes[1]](2))])


def recurrence_of(h0, x, y, axes=(0, 1), reverse=(0, 1), out_axes=(0, 1), out_reverse=(1, 0)):
    rows = [np.moveaxis(value, axis, 0)[::-1 if back else 1] for value, axis, back in zip((x, y), axes, reverse)]
    h, outs = h0, ([], [])
    for n, (p, q) in enumerate(zip(*rows), 1):
        h = np.tanh((h.astype(np.float64) @ WEIGHTS + p)).astype(np.float32)
        outs[0].append(h * np.float32(n))
        outs[1].append(np.concatenate([q, h[:1]]))
    stacked = [np.moveaxis(np.stack(out)[::-1 if back else 1], 0, axis) for out, axis, back in zip(outs, out_axes, out_reverse)]
    return [h, np.int64(len(rows[0])), *stacked]


def rounds_of_rows():
    """As many rounds as x has rows, each with its row: a Loop whose count is an extent."""
    b = Builder([])
    body = loop_body(("s", FLOAT, [4]))
    row = body.add("Gather", ["x", body.inputs[0][0]], axis=0)
    after = body.add("Add", [body.add("Mul", ["s", np.float32(0.9)]), row])
    graph = body.graph([(body.add("Identity", [body.inputs[1][0]]), BOOL), (after, FLOAT), (body.add("Relu", [after]), FLOAT)])
    count = b.add("Squeeze", [b.add("Slice", [b.add("Shape", ["x"]), b.ints(0), b.ints(1)])])
    results = many(b, "Loop", [count, "", np.zeros(4, np.float32)], 2, body=graph)
    return model(b, [(results[0], FLOAT), (b.add("Mul", [results[1], np.float32(2)]), FLOAT)], [("x", FLOAT, ["T", 4])])


def rounds_of_rows_of(x):
    s, rows = np.zeros(4, np.float32), []
    for row in x:
        s = s * np.float32(0.9) + row
        rows.append(np.maximum(s, 0) * 2)
    return [s, np.stack(rows)]


def unbounded_parts():
    """A part of each of as many rounds as an input says."""
    b = Builder([])
    body = loop_body(("v", FLOAT, [2]))
    after = body.add("Tanh", ["v"])
    graph = body.graph([(body.add("Identity", [body.inputs[1][0]]), BOOL), (after, FLOAT), (body.add("Neg", [after]), FLOAT)])
    results = many(b, "Loop", ["m", "", "x"], 2, body=graph)
    return model(b, [(name, FLOAT) for name in results], [("m", INT64, []), ("x", FLOAT, [2])])


def chosen_or_endless():
    """A loop in one branch that would not end where the other branch is taken, and a place that is none there."""
    b = Builder([])
    yes, no = Body([]), Body([])
    body = loop_body(("v", FLOAT, []), ("parts", INT64, []))
    graph = body.graph([(body.add("Less", [body.add("Add", ["v", "step"]), np.float32(3)]), BOOL), (body.add("Add", ["v", "step"]), FLOAT),
                        (body.add("Add", ["parts", np.int64(1)]), INT64)])
    looped = many(yes, "Loop", ["", "", np.float32(0), np.int64(0)], 2, body=graph)
    pair = yes.add("SequenceConstruct", [looped[0], "step"])
    place = yes.add("Cast", ["step"], to=INT64)
    one = yes.graph([(looped[1], INT64), (yes.add("SequenceAt", [pair, place]), FLOAT)])
    other = no.graph([(no.add("Cast", ["step"], to=INT64), INT64), (no.add("Neg", ["step"]), FLOAT)])
    positive = b.add("And", [b.add("Greater", ["step", np.float32(0)]), b.add("Less", ["step", np.float32(100)])])
    results = many(b, "If", [positive], 2, then_branch=one, else_branch=other)
    return model(b, list(zip(results, (INT64, FLOAT))), [("step", FLOAT, [])])


def chosen_or_endless_of(step):
    if not 0 < step < 100:
        return [np.int64(step), -step]
    v, parts = np.float32(0), 0
    while True:
        v, parts = v + step, parts + 1
        if not v < 3:
            return [np.int64(parts), [v, step][int(step)]]


def branching():
    """A choice in each iteration, by its number and by what is handed on; both branches read values around the loop."""
    b = Builder([])
    body = loop_body(("v", FLOAT, [3]), ("taken", INT64, []))
    even = body.add("Equal", [body.add("Mod", [body.inputs[0][0], np.int64(2)]), np.int64(0)])
    yes, no = Body([]), Body([])
    added = yes.graph([(yes.add("Add", ["v", "x"]), FLOAT)])
    scaled = no.graph([(no.add("Mul", ["v", "w"]), FLOAT)])
    (first,) = many(body, "If", [even], 1, then_branch=added, else_branch=scaled)
    large = body.add("Greater", [body.add("ReduceSum", [first], keepdims=0), np.float32(2)])
    halved, kept = Body([]), Body([])
    one = halved.graph([(halved.add("Mul", [first, np.float32(0.25)]), FLOAT), (halved.add("Add", ["taken", np.int64(1)]), INT64)])
    other = kept.graph([(kept.add("Identity", [first]), FLOAT), (kept.add("Identity", ["taken"]), INT64)])
    after = many(body, "If", [large], 2, then_branch=one, else_branch=other)
    graph = body.graph([(body.add("Identity", [body.inputs[1][0]]), BOOL), (after[0], FLOAT), (after[1], INT64)])
    results = many(b, "Loop", ["m", "", "x", np.int64(0)], 2, body=graph)
    return model(b, list(zip(results, (FLOAT, INT64))), [("m", INT64, []), ("x", FLOAT, [3]), ("w", FLOAT, [3])])


def branching_of(m, x, w):
    v, taken = x, 0
    for i in range(int(m)):
        v = v + x if i % 2 == 0 else v * w
        if v.sum(dtype=np.float32) > 2:
            v, taken = v * np.float32(0.25), taken + 1
    return [v, np.int64(taken)]


def chosen():
    """A loop in one branch of a choice that data makes."""
    b = Builder([])
    yes, no = Body([]), Body([])
    body = loop_body(("v", FLOAT, [2]))
    after = body.add("Mul", ["v", np.float32(0.5)])
    size = body.add("ReduceMax", [body.add("Abs", [after])], keepdims=0)
    graph = body.graph([(body.add("Greater", [size, "bound"]), BOOL), (after, FLOAT)])
    looped = yes.graph([(many(yes, "Loop", ["", np.bool_(True), "x"], 1, body=graph)[0], FLOAT)])
    direct = no.graph([(no.add("Neg", ["x"]), FLOAT)])
    positive = b.add("Greater", [b.add("ReduceSum", ["x"], keepdims=0), np.float32(0)])
    return model(b, [(many(b, "If", [positive], 1, then_branch=looped, else_branch=direct)[0], FLOAT)],
                 [("x", FLOAT, [2]), ("bound", FLOAT, [])])


def chosen_of(x, bound):
    if not x.sum() > 0:
        return [-x]
    v = x * np.float32(0.5)
    while np.abs(v).max() > bound:
        v = v * np.float32(0.5)
    return [v]


def host_steps():
    """A body whose steps no kernel computes: the two largest, and how many are above 0, in each iteration."""
    b = Builder([])
    body = loop_body(("v", FLOAT, [5]), ("seen", INT64, []))
    top = many(body, "TopK", ["v", body.ints(2)], 2, axis=0)
    after = body.add("Sub", ["v", body.add("ReduceMean", [top[0]], keepdims=0)])
    places = body.add("NonZero", [body.add("Relu", [after])])
    count = body.add("Squeeze", [body.add("Slice", [body.add("Shape", [places]), body.ints(1), body.ints(2)])])
    graph = body.graph([(body.add("Greater", [count, np.int64(0)]), BOOL), (after, FLOAT), (body.add("Add", ["seen", count]), INT64)])
    results = many(b, "Loop", ["m", "", "x", np.int64(0)], 2, body=graph)
    return model(b, list(zip(results, (FLOAT, INT64))), [("m", INT64, []), ("x", FLOAT, [5])])


def host_steps_of(m, x):
    v, seen = x, 0
    for _ in range(int(m)):
        v = v - np.sort(v)[-2:].mean(dtype=np.float32)
        count = int((v > 0).sum())
        seen += count
        if count == 0:
            break
    return [v, np.int64(seen)]


def stepping(last_too=False):
    """Steps until a bound is passed, or reached: without end where a step is none."""
    b = Builder([])
    body = loop_body(("v", FLOAT, []))
    after = body.add("Add", ["v", "step"])
    goes_on = body.add("LessOrEqual" if last_too else "Less", [after, "bound"])
    graph = body.graph([(goes_on, BOOL), (after, FLOAT)])
    (result,) = many(b, "Loop", ["", np.bool_(True), np.float32(0)], 1, body=graph)
    return model(b, [(result, FLOAT)], [("step", FLOAT, []), ("bound", FLOAT, [])])


def batched_scan(batch, length, reverse=0, has_lengths=True):
    """A Scan of opset 8: each row of the batch has its own state and as many steps as its length says."""
    b = Builder([])
    body = Body([("h", FLOAT, [3]), ("p", FLOAT, [3])])
    after = body.add("Tanh", [body.add("Add", [body.add("Mul", ["h", "w"]), "p"])])
    graph = body.graph([(after, FLOAT), (body.add("Neg", [after]), FLOAT)])
    inputs = [("lengths", INT64, [batch])] if has_lengths else []
    inputs += [("h0", FLOAT, [batch, 3]), ("x", FLOAT, [batch, length, 3]), ("w", FLOAT, [3])]
    results = many(b, "Scan", ["lengths" if has_lengths else "", "h0", "x"], 2, body=graph, num_scan_inputs=1, directions=[reverse])
    return model(b, [(name, FLOAT) for name in results], inputs, 8)


def batched_scan_of(lengths, h0, x, w, reverse=0):
    states, rows = [], np.zeros_like(x)
    for row, length in enumerate(lengths):
        h = h0[row]
        for step in range(length):
            h = np.tanh(h * w + x[row, length - 1 - step if reverse else step])
            rows[row, step] = -h
        states.append(h)
    return [np.stack(states), rows]
