"""reference/c.md of the installed headers: every declaration with the comment before it."""

import re

from generate.tables import ROOT

HEAD = """# C and C++

What `tensormill.h` and `tensormill.hpp` declare, made of the headers. [How to embed](../how-to/embed.md) shows programs
that use them. C functions return 0 or a negative code unless they say otherwise.
"""
C_HEADERS = [("runtime/capi/tensormill.h", "`tensormill.h`"), ("compiler/capi/tensormill_interpreter.h", "`tensormill_interpreter.h`")]
CPP_HEADER = "runtime/capi/tensormill.hpp"
COMMENT = re.compile(r"/\*\*?(.*?)\*/", re.DOTALL)
FUNCTION = re.compile(r"^(?:const )?\w+\*? ?\*?(tm_\w+)\([^;]*\);", re.MULTILINE | re.DOTALL)
TYPE = re.compile(r"^typedef .*?(?:^\}\s*(\w+)|struct \w+ (\w+));|^enum \{(.*?)^\};", re.MULTILINE | re.DOTALL)
CPP_CLASS = re.compile(r"^(?:class|struct) (\w+)[^;{]*\{", re.MULTILINE)
CPP_MEMBER = re.compile(r"^  (?!return|if|for|switch|static_assert|check\(|\})(?:explicit |static )?[\w:<>*& ]*?\b(~?\w+|operator\S+)\(", re.MULTILINE)


def words(comment):
    """A comment's text as a paragraph."""
    return " ".join(line.strip().lstrip("*").strip() for line in comment.splitlines()).strip()


def comment_of(text, start, end):
    """The comment behind a declaration on its last line, or the one that ends on the line before it."""
    behind = re.match(r" *" + COMMENT.pattern, text[end:].split("\n", 1)[0])
    if behind:
        return words(behind.group(1))
    lines = text[:start].splitlines()
    if not lines or not lines[-1].endswith("*/"):
        return ""
    first = next(at for at in range(len(lines) - 1, -1, -1) if "/*" in lines[at])
    comment = COMMENT.fullmatch("\n".join(lines[first:]))
    return words(comment.group(1)) if comment else ""


def c_functions():
    """Names of all functions of the C headers."""
    return [name for path, _ in C_HEADERS for name in FUNCTION.findall((ROOT / path).read_text(encoding="utf-8"))]


def declarations(text):
    """(position, name, declaration) of types and functions, in the order of the header."""
    found = [(match.start(), match.group(1), match.group(0)) for match in FUNCTION.finditer(text)]
    for match in TYPE.finditer(text):
        found.append((match.start(), match.group(1) or match.group(2) or "TM_ERR", match.group(0)))
    return sorted(found)


def c_page(path, title):
    text = (ROOT / path).read_text(encoding="utf-8")
    lines = [f"## {title}\n", words(COMMENT.search(text).group(1)) + "\n"]
    for position, name, declaration in declarations(text):
        heading = "Codes `TM_ERR_…`" if name == "TM_ERR" else f"`{name}`"
        lines += [f"### {heading} {{ #{name.lower()} }}\n", "```c", declaration, "```\n", comment_of(text, position, position + len(declaration)), ""]
    return lines


def class_body(text, position):
    depth = 0
    for end in range(text.index("{", position), len(text)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0:
            return text[position:end + 1]
    raise ValueError("a class without an end")


def comment_lines_before(lines, index):
    said = []
    while index > 0 and lines[index - 1].strip().startswith("///"):
        index -= 1
        said.insert(0, lines[index].strip()[3:].strip())
    return " ".join(said)


def signature_at(lines, index):
    """A member's declaration without its body."""
    text = ""
    for line in lines[index:]:
        text += (" " if text else "") + line.strip()
        cut = re.search(r"\s*(?:\{|;|\) :|\s:\s)", text)
        if cut and text.count("(") == text.count(")") or text.endswith((";", "{", "}")):
            break
    text = re.sub(r"\)\s*:\s.*|\s*\{.*", lambda m: ")" if m.group(0).startswith(")") else "", text)
    return text.rstrip(";")


def cpp_classes():
    """(name, comment, [(signature, comment)]) of the public part of each class."""
    text = (ROOT / CPP_HEADER).read_text(encoding="utf-8")
    found = []
    for match in CPP_CLASS.finditer(text):
        body = class_body(text, match.start()).split("\nprivate:")[0]
        before = text[:match.start()].splitlines()
        while before and before[-1].startswith("template"):
            before.pop()
        lines, seen = body.splitlines(), []
        for index, line in enumerate(lines):
            if line.startswith("  ") and not line.startswith("   ") and CPP_MEMBER.match(line):
                at = index - 1 if lines[index - 1].strip().startswith("template") else index
                seen.append((signature_at(lines, index), comment_lines_before(lines, at)))
            elif match.group(0).startswith("struct") and line.startswith("  ") and line.rstrip().endswith(";"):
                seen.append((line.strip().rstrip(";"), ""))
            elif (field := re.match(r"  ([\w:<> ]+ \w+(?: = \w+)?);\s*///< (.*)", line)):
                seen.append((field.group(1), field.group(2)))
        found.append((match.group(1), comment_lines_before([*before, ""], len(before)), seen))
    return found


def cpp_page():
    text = (ROOT / CPP_HEADER).read_text(encoding="utf-8")
    intro = [line[4:] for line in text.split("#pragma once")[0].splitlines()]
    lines = ["## `tensormill.hpp`\n", *(line if not line.startswith("    ") else line for line in intro), ""]
    for name, said, members in cpp_classes():
        lines += [f"### `tensormill::{name}` {{ #cpp-{name.lower()} }}\n", said + "\n"]
        lines += [f"* `{signature}`" + (f": {of}" if of else "") for signature, of in members] + [""]
    lines += ["### Functions { #cpp-functions }\n"]
    lines += ["* `void check(std::int32_t code)`: throws an Error for a code that is not 0.",
              "* `constexpr tm_dtype dtype_of<T>()`: the `tm_dtype` of a C++ type.", ""]
    return lines


def page():
    lines = [HEAD]
    for path, title in C_HEADERS:
        lines += c_page(path, title)
    return "\n".join(lines + cpp_page())
