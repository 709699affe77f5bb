"""reference/errors.md of runtime/base/error_codes.def and error_help.def."""

from generate.tables import prose, rows

HEAD = """# Error codes

Every error has a code of this closed list. Over HTTP it is `code` of the problem document, on the command line it decides the
exit code: 2 the command line is wrong, 3 the input is wrong, 4 not supported, 5 an internal error or a fault of the machine.
`tensormill explain CODE` says what stands here.
"""


def codes():
    return rows("runtime/base/error_codes.def", "TM_ERROR_CODE")


def page():
    lines, helps = [HEAD], {row[0]: row[1:] for row in rows("runtime/base/error_help.def", "TM_ERROR_HELP")}
    for enumerator, name, status, _, exit_code, when, *_ in sorted(codes(), key=lambda row: row[1]):
        why, what_to_do = helps[enumerator]
        lines += [f"## `{name}`\n", f"{prose(when[:1].upper() + when[1:])}.\n", f"HTTP status {status}, exit code {exit_code}.\n",
                  f"**Why it comes.** {prose(why)}\n", f"**What to do.** {prose(what_to_do)}\n"]
    return "\n".join(lines)
