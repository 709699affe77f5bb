"""Rows of the .def tables, which the program itself is built of: what a page says of them cannot be out of date."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
_ITEM = re.compile(r'"((?:\\.|[^"\\])*)"|([^,()\s"]+)')


def rows(path, macro):
    """The arguments of each row, as text; strings that stand side by side are one."""
    text = (ROOT / path).read_text(encoding="utf-8")
    found = []
    for start in re.finditer(rf"^{macro}\(", text, re.MULTILINE):
        end = _row_end(text, start.end())
        found.append(_arguments(text[start.end():end]))
    return found


def _row_end(text, position):
    depth, quoted = 1, False
    while depth:
        letter = text[position]
        if quoted:
            position += letter == "\\"
            quoted = letter != '"'
        elif letter == '"':
            quoted = True
        else:
            depth += {"(": 1, ")": -1}.get(letter, 0)
        position += 1
    return position - 1


def _arguments(body):
    arguments, last_end = [], None
    for item in _ITEM.finditer(body):
        text = item.group(1).replace('\\"', '"') if item.group(1) is not None else item.group(2)
        if last_end is not None and "," not in body[last_end:item.start()]:
            arguments[-1] += text
        else:
            arguments.append(text)
        last_end = item.end()
    return arguments


def cell(text):
    """Text as a cell of a Markdown table: no letter of it is markup."""
    text = re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", str(text))
    return text.replace("\n", " ")


def prose(text):
    """Running text in which back-quotes stand around code."""
    return "".join(part if part.startswith("`") else cell(part) for part in re.split(r"(`[^`]*`)", text))


def code(text):
    """Text in code quotes, whatever it holds, also in a table."""
    return "`" + str(text).replace("|", "\\|") + "`" if text and "`" not in str(text) else cell(text)


def table(heads, lines):
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for line in lines:
        yield "| " + " | ".join(line) + " |"
    yield ""
