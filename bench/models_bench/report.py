"""The figures as a Markdown table and as a bar chart."""

from xml.sax.saxutils import escape

COLUMNS = ("network", "ours, ms", "ONNX Runtime, ms", "ratio", "ours, 2 threads", "ONNX Runtime, 2 threads", "ratio",
           "batch 8 ratio", "compile, s", "params ÷ weights", "memory ÷ peer's", "error, float64")


def row(name, net):
    one, two, memory = net["latency"]["threads1"], net["latency"]["threads2"], net["memory"]
    return (name, f"{one['ours_ms']:.3g}", f"{one['peer_ms']:.3g}", f"{one['ratio']:.2f}", f"{two['ours_ms']:.3g}",
            f"{two['peer_ms']:.3g}", f"{two['ratio']:.2f}", f"{net['batch8']['ratio']:.2f}", f"{net['compile_s']:.1f}",
            f"{memory['params_ratio']:.2f}", f"{memory['ratio']:.2f}", f"{net['accuracy']['against_reference']:.1e}")


def table(rows):
    return "\n".join("| " + " | ".join(r) + " |" for r in rows)


def markdown(run):
    lines = [f"Batch 1, float32, opt level 3, default schedules; median of {run['rounds']} alternating blocks; ONNX "
             f"Runtime's figures without the floor of its Node binding. {run['cpu']}; FMA peak in this run "
             f"{run['peak1']:.0f} GFLOP/s on one thread, {run['peak2']:.0f} on two.", ""]
    lines.append(table([COLUMNS, ["---"] * len(COLUMNS), *(row(n, net) for n, net in run["nets"].items())]))
    for name, net in run["nets"].items():
        if "slope" in net:
            lines += ["", f"{name} by slope (one more copy in a chain): ours {net['slope']['ours_us']:.1f} µs, ONNX "
                          f"Runtime {net['slope']['peer_us']:.1f} µs, ratio {net['slope']['ratio']:.2f}."]
    lines += ["", table([("bar", "figure", "limit", ""), ["---"] * 4,
                         *((b["what"], f"{b['figure']:.4g}", b["limit"], "pass" if b["passed"] else "FAIL")
                           for b in run["bars"])]), ""]
    return "\n".join(lines)


LEFT, WIDTH, BAR, GAP, TOP = 120, 480, 14, 12, 44
COLOURS = {"threads1": "#2b6cb0", "threads2": "#90cdf4"}


def svg(run):
    """Ratios of each network on one and two threads; the line is ONNX Runtime."""
    nets = run["nets"]
    longest = max([1.5, *(n["latency"][t]["ratio"] for n in nets.values() for t in COLOURS)])
    scale = WIDTH / longest
    height = TOP + len(nets) * (2 * BAR + GAP) + 28
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 70}" height="{height}" '
             'font-family="sans-serif" font-size="12">',
             '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="{LEFT}" y="18" font-size="14">Speed against ONNX Runtime (= 1), batch 1</text>']
    for i, (threads, colour) in enumerate(COLOURS.items()):
        parts.append(f'<rect x="{LEFT + i * 90}" y="26" width="10" height="10" fill="{colour}"/>'
                     f'<text x="{LEFT + i * 90 + 14}" y="35">{threads[-1]} thread{"s" * i}</text>')
    for i, (name, net) in enumerate(nets.items()):
        y = TOP + i * (2 * BAR + GAP)
        parts.append(f'<text x="{LEFT - 8}" y="{y + BAR + 4}" text-anchor="end">{escape(name)}</text>')
        for j, (threads, colour) in enumerate(COLOURS.items()):
            ratio = net["latency"][threads]["ratio"]
            parts.append(f'<rect x="{LEFT}" y="{y + j * BAR}" width="{ratio * scale:.1f}" height="{BAR - 1}" '
                         f'fill="{colour}"/><text x="{LEFT + ratio * scale + 4:.1f}" y="{y + j * BAR + 11}">'
                         f'{ratio:.2f}</text>')
    parts.append(f'<line x1="{LEFT + scale:.1f}" x2="{LEFT + scale:.1f}" y1="{TOP - 4}" y2="{height - 24}" '
                 'stroke="#c53030" stroke-dasharray="4 3"/></svg>')
    return "\n".join(parts) + "\n"
