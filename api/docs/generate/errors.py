"""reference/errors.md of runtime/base/error_codes.def."""

from generate.tables import cell, rows

HEAD = """# Error codes

Every error has a code of this closed list. Over HTTP it is `code` of the problem document, on the command line it decides the
exit code: 2 the command line is wrong, 3 the input is wrong, 4 not supported, 5 an internal error or a fault of the machine.
"""


def codes():
    return rows("runtime/base/error_codes.def", "TM_ERROR_CODE")


def page():
    lines = [HEAD]
    for _, name, status, exit_code, when, *_ in sorted(codes(), key=lambda row: row[1]):
        lines += [f"## `{name}`\n", f"{cell(when)}.\n", f"HTTP status {status}, exit code {exit_code}\n"]
    return "\n".join(lines)
