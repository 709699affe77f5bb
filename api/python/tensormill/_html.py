"""What notebooks show. Names come from models, that is from strangers: each is escaped, and no attribute, link, style or
script is ever made of one."""

from __future__ import annotations

from html import escape
from typing import Any, Iterable, List, Optional, Sequence, Tuple

_STYLE = "border-collapse:collapse;margin:.4em 0;font-size:90%"
_CELL = "text-align:left;padding:.15em .7em .15em 0;border-bottom:1px solid rgba(128,128,128,.3)"


def text(value: Any) -> str:
    """Any value as text that HTML shows and never obeys.

    >>> text('<img src=x onerror=alert(1)>')
    '&lt;img src=x onerror=alert(1)&gt;'
    """
    # Controls, also those that turn the direction of what follows, are shown by number.
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in str(value))
    return escape(shown, quote=True)


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], most: int = 40) -> str:
    """A table of ``most`` rows; what is left out is counted."""
    kept: List[Sequence[Any]] = list(rows)
    lines = ["<table style='" + _STYLE + "'><tr>"
             + "".join(f"<th style='{_CELL}'>{text(name)}</th>" for name in head) + "</tr>"]
    for row in kept[:most]:
        lines.append("<tr>" + "".join(f"<td style='{_CELL}'>{text(cell)}</td>" for cell in row) + "</tr>")
    lines.append("</table>")
    if len(kept) > most:
        lines.append(f"<div>and {len(kept) - most} more</div>")
    return "".join(lines)


def tensors(inputs: Iterable[Any], outputs: Iterable[Any]) -> str:
    """Inputs and outputs."""
    rows: List[Tuple[str, str, str, str]] = []
    for way, specs in (("in", inputs), ("out", outputs)):
        rows += [(way, one.name, one.dtype, "[" + ", ".join(map(str, one.shape)) + "]") for one in specs]
    return table(("", "tensor", "type", "shape"), rows)


def card(kind: str, name: str, facts: Iterable[Tuple[str, Any]], parts: Iterable[str]) -> str:
    """What one thing is."""
    head = f"<div><b>{text(kind)}</b> {text(name)}</div>"
    return "<div>" + head + table(("", ""), facts) + "".join(parts) + "</div>"


def bars(rows: Sequence[Tuple[str, float]], unit: str, most: int = 40) -> str:
    """Named amounts, each with a bar."""
    largest = max((amount for _, amount in rows), default=0.0) or 1.0
    lines = [f"<table style='{_STYLE}'>"]
    for name, amount in rows[:most]:
        width = max(1, round(160 * amount / largest))
        lines.append(f"<tr><td style='{_CELL}'>{text(name)}</td><td style='{_CELL}'>{amount:.1f} {text(unit)}</td>"
                     f"<td style='{_CELL}'><div style='background:#4a7fb5;height:.7em;width:{width}px'></div></td></tr>")
    lines.append("</table>")
    if len(rows) > most:
        lines.append(f"<div>and {len(rows) - most} more</div>")
    return "".join(lines)


def first_line(value: Optional[str]) -> str:
    """The first line of a text."""
    return (value or "").split("\n", 1)[0]
