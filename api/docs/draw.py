#!/usr/bin/env python3
"""The pictures of the three flows, drawn as SVG: boxes on a grid and arrows between them.

    draw.py    writes pictures/compile.svg, infer.svg and job.svg, which ARCHITECTURE.md shows too
"""

from html import escape
from pathlib import Path

# A cell of the grid and the box in it, in pixels.
CELL_W, CELL_H, BOX_W, LINE_H = 200, 124, 164, 15
FILLS = {"outside": "#eef3fa", "child": "#fdf3e6", "server": "#f4f4f4", "store": "#e9f5ea"}
MEANINGS = {"outside": "outside", "child": "confined child process", "server": "server process", "store": "store"}

# Name -> title, boxes {key: (column, row, kind, heading, lines)}, arrows (from, to, label).
FLOWS = {
    "compile": ("From a model's bytes to a package", {
        "model": (0, 0, "outside", "model", ["bytes of a file"]),
        "frontend": (1, 0, "child", "frontend", ["reads the format,", "checks every size"]),
        "graph": (2, 0, "child", "graph", ["operators, types,", "extents as formulas"]),
        "passes": (3, 0, "child", "passes", ["fold, fuse, choose", "layouts, algorithms"]),
        "te": (3, 1, "child", "tensor expressions", ["what each kernel", "computes"]),
        "schedule": (2, 1, "child", "schedule", ["how: tiles, vectors,", "threads; or a record"]),
        "loops": (1, 1, "child", "loop IR", ["checked: bounds,", "races"]),
        "code": (0, 1, "child", "machine code", ["LLVM; compared with", "the reference"]),
        "plan": (1, 2, "child", "plan", ["steps, buffers,", "packed weights"]),
        "package": (2, 2, "store", "package", ["metadata, plan, code,", "weights; by digest"])},
        [("model", "frontend", ""), ("frontend", "graph", ""), ("graph", "passes", ""), ("passes", "te", "each kernel"),
         ("te", "schedule", ""), ("schedule", "loops", ""), ("loops", "code", ""), ("code", "plan", ""), ("plan", "package", "")]),
    "infer": ("From a request to its answer", {
        "client": (0, 0, "outside", "client", ["NPZ, KServe v2,", "a picture"]),
        "transport": (1, 0, "server", "transport", ["sockets, TLS,", "limits of time, size"]),
        "api": (2, 0, "server", "endpoint", ["key, scope, schema,", "memory in flight"]),
        "batcher": (3, 0, "server", "batcher", ["queue, deadline,", "rows share a run"]),
        "executor": (3, 1, "server", "executor", ["binds shapes, runs", "the plan's steps"]),
        "kernels": (2, 1, "server", "kernels", ["admitted code on", "one thread pool"]),
        "package": (2, 2, "store", "package", ["mapped: executors", "share its pages"]),
        "answer": (1, 1, "server", "answer", ["tensors, or labels", "with probabilities"])},
        [("client", "transport", ""), ("transport", "api", ""), ("api", "batcher", ""), ("batcher", "executor", ""),
         ("executor", "kernels", ""), ("package", "kernels", ""), ("kernels", "answer", ""), ("answer", "client", "")]),
    "job": ("From a job's request to its result", {
        "client": (0, 0, "outside", "client", ["POST /v1/jobs,", "events, cancel"]),
        "service": (1, 0, "server", "job service", ["resolves model and", "target to a key"]),
        "catalog": (2, 0, "store", "catalog", ["a row: state, lease,", "attempts, events"]),
        "pool": (2, 1, "server", "worker pool", ["claims, renews the", "lease, retries"]),
        "child": (3, 1, "child", "child", ["no files, no network,", "limits of memory, time"]),
        "blobs": (3, 2, "store", "blobs", ["members of packages,", "by digest"]),
        "publish": (2, 2, "server", "publication", ["package and end of the", "job in one transaction"]),
        "events": (0, 1, "server", "event stream", ["progress, live;", "resumed by number"])},
        [("client", "service", ""), ("service", "catalog", ""), ("catalog", "pool", ""), ("pool", "child", ""),
         ("child", "blobs", ""), ("blobs", "publish", ""), ("pool", "publish", ""), ("pool", "events", "progress"),
         ("events", "client", "")]),
}


def height(lines):
    return 34 + LINE_H * len(lines)


def place(box):
    column, row, _, _, lines = box
    return 18 + column * CELL_W, 44 + row * CELL_H, BOX_W, height(lines)


def draw_box(box):
    x, y, width, tall = place(box)
    _, _, kind, heading, lines = box
    middle = x + width // 2
    yield f'<rect x="{x}" y="{y}" width="{width}" height="{tall}" rx="6" fill="{FILLS[kind]}" stroke="#44546a"/>'
    yield f'<text x="{middle}" y="{y + 20}" text-anchor="middle" font-weight="bold">{escape(heading)}</text>'
    for number, line in enumerate(lines):
        yield f'<text x="{middle}" y="{y + 38 + LINE_H * number}" text-anchor="middle" font-size="12">{escape(line)}</text>'


def ends(start, end):
    """Where an arrow leaves its box and where it arrives: at the sides that face each other."""
    (x1, y1, w1, h1), (x2, y2, w2, h2) = place(start), place(end)
    if start[1] == end[1]:
        right = start[0] < end[0]
        middle = min(h1, h2) // 2
        return (x1 + w1 if right else x1, y1 + middle), (x2 if right else x2 + w2, y2 + middle)
    down = start[1] < end[1]
    shift = 0 if start[0] == end[0] else (BOX_W // 3 if start[0] < end[0] else -BOX_W // 3)
    return (x1 + w1 // 2 + shift, y1 + h1 if down else y1), (x2 + w2 // 2 - shift, y2 if down else y2 + h2)


def draw_arrow(start, end, label):
    (x1, y1), (x2, y2) = ends(start, end)
    yield f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#44546a" stroke-width="1.5" marker-end="url(#tip)"/>'
    if label:
        yield f'<text x="{(x1 + x2) // 2 + 6}" y="{(y1 + y2) // 2 + 4}" font-size="11">{escape(label)}</text>'


def picture(title, boxes, arrows):
    wide = 36 + BOX_W + CELL_W * max(box[0] for box in boxes.values())
    tall = 44 + CELL_H * max(box[1] for box in boxes.values()) + 64 + 44
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}" '
             'font-family="sans-serif" font-size="14" fill="#1f2937">', f"<title>{escape(title)}</title>",
             '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
             '<path d="M0 0L10 5L0 10z" fill="#44546a"/></marker></defs>', f'<rect width="{wide}" height="{tall}" fill="#ffffff"/>',
             f'<text x="18" y="26" font-weight="bold">{escape(title)}</text>']
    for box in boxes.values():
        lines += draw_box(box)
    for start, end, label in arrows:
        lines += draw_arrow(boxes[start], boxes[end], label)
    kinds = list(dict.fromkeys(box[2] for box in boxes.values()))
    x = 18
    for kind in kinds:
        lines += [f'<rect x="{x}" y="{tall - 26}" width="14" height="14" rx="3" fill="{FILLS[kind]}" stroke="#44546a"/>',
                  f'<text x="{x + 20}" y="{tall - 15}" font-size="12">{MEANINGS[kind]}</text>']
        x += 40 + 7 * len(MEANINGS[kind])
    return "\n".join([*lines, "</svg>"]) + "\n"


def pictures():
    """Name -> the SVG's text."""
    return {name: picture(*flow) for name, flow in FLOWS.items()}


if __name__ == "__main__":
    for name, text in pictures().items():
        (Path(__file__).parent / "pictures" / f"{name}.svg").write_text(text, encoding="utf-8")
