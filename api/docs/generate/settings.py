"""reference/settings.md of config/settings.def."""

from generate.tables import code, prose, rows

FORMS = {"kText": "text", "kList": "list of texts", "kFlag": "true or false", "kWhole": "whole number", "kBytes": "bytes",
         "kMillis": "time"}
HEAD = """# Settings

Each setting is a flag of `tensormill serve` (`--set NAME=VALUE`, some with a flag of their own), a variable of the environment and a
key of the TOML file that `--config` names; the first of these that has it decides. `tensormill config check` prints
what holds. Bytes are written as a number or as `64KiB`, `2GiB`; times as `250ms`, `30s`, `5m`, `2h`.
"""


def settings():
    return rows("config/settings.def", "TM_SETTING")


def group_of(row):
    return row[2].split(".")[0] if "." in row[2] else ""


def variable(name):
    return "TENSORMILL_" + name.upper().replace(".", "_")


def bounds(kind, low, high):
    """What the table bounds: numbers in their own units, nothing else."""
    return "" if kind in ("kText", "kList", "kFlag") else f", {_amount(kind, int(low))} to {_amount(kind, int(high))}"


def _amount(kind, value):
    units = {"kBytes": [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "")],
             "kMillis": [(3600000, "h"), (60000, "min"), (1000, "s"), (1, "ms")]}
    for size, unit in units.get(kind, [(1, "")]):
        if value >= size and value % size == 0:
            return f"{value // size} {unit}".strip()
    return "0"


def page():
    lines, table = [HEAD], settings()
    for group in dict.fromkeys(map(group_of, table)):
        lines.append(f"## {group or 'The process'}\n")
        for kind, _, name, default, low, high, meaning in (row for row in table if group_of(row) == group):
            lines += [f"### `{name}`\n", f"{prose(meaning)}\n",
                      f"{FORMS[kind]}{bounds(kind, low, high)}; default {code(default) if default else 'empty'}; variable `{variable(name)}`\n"]
    return "\n".join(lines)
