"""reference/cli.md of what the program says for --help."""

import re
import sys

from generate.tables import ROOT, cell, code, prose

sys.path.insert(0, str(ROOT / "config/package"))

import describe_cli  # noqa: E402

HEAD = """# Command line

`tensormill COMMAND --help` says the same as this page, which is made of it. `--json` prints reports as JSON, `-v` says more.
Exit codes: 0 done, 2 the command line is wrong, 3 the input is wrong, 4 not supported, 5 an internal error.
"""


def repeats(head, says):
    """Whether what is said of an option are its choices, which its head has."""
    choices = re.search(r"\{([^}]*)\}", head)
    return bool(choices) and set(re.split(r", | or ", says)) == set(choices.group(1).split(","))


def commands(program):
    """Every command, each followed by those below it."""
    found = []
    for name, _ in describe_cli.ask(program).commands:
        command = describe_cli.ask(program, name)
        found += [command, *(describe_cli.ask(program, name, below) for below, _ in command.commands)]
    return found


def page(program):
    lines = [HEAD]
    for command in [describe_cli.ask(program), *commands(program)]:
        lines += [f"## `{('tensormill ' + command.name).strip()}`\n", f"{prose(command.says)}\n", "```text", command.usage, "```\n"]
        for heading, rows in command.rows.items():
            if rows:
                lines += [f"**{cell(heading)}**\n"]
                lines += [f"* {code(head)}: {prose(says)}" if says and not repeats(head, says) else f"* {code(head)}"
                          for head, says in rows] + [""]
        if command.examples:
            lines += ["**Examples**\n", "```text", *command.examples, "```\n"]
    return "\n".join(lines)
