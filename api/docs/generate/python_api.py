"""reference/python.md of the Python package: every public name, its signature and what it says of itself.

Run by a Python that has what the package needs: `python -m generate.python_api` prints the page. Names are those of `__all__`, and the
members of classes that do not begin with an underscore.
"""

import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "api/python"))

HEAD = """# Python

All public names of `import tensormill as tm`, made of the package itself. [The tutorial](../tutorials/python.md) shows them at work.
"""
WIDTH, INDENT = 84, "    "
# Where a name of the package is said to be.
PRIVATE = re.compile(r"\btensormill\.(?:_\w+\.)?|\btyping\.|\bcollections\.abc\.|\bpathlib\.|\bbuiltins\.")


def public_names():
    """(name, object) of the package and of its module client."""
    import tensormill
    import tensormill.client
    found = [(name, getattr(tensormill, name)) for name in tensormill.__all__]
    extra = [name for name in getattr(tensormill.client, "__all__", ()) if name not in tensormill.__all__]
    return found + [(f"client.{name}", getattr(tensormill.client, name)) for name in extra]


def members(cls):
    """(name, object) of a class, inherited ones of this package included, in the order of the source."""
    seen = {}
    for base in reversed([base for base in cls.__mro__ if base.__module__.startswith("tensormill")]):
        seen.update({name: value for name, value in vars(base).items() if not name.startswith("_") or name == "__init__"})
    for name, value in seen.items():
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if inspect.isfunction(value) or isinstance(value, property) or inspect.isdatadescriptor(value):
            yield name, value


def signature(name, value):
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return name
    # Annotations are texts there; defaults that are texts stay in quotes.
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text.replace("self, ", "", 1).replace("(self)", "()", 1))
    return broken(name + PRIVATE.sub("", text))


def broken(text):
    """A long signature with a parameter a line."""
    if len(text) <= WIDTH:
        return text
    lines, depth = [""], 0
    for letter in text:
        if lines[-1] == INDENT and letter == " ":
            continue
        lines[-1] += letter
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
        if depth == 1 and letter in "(,":
            lines.append(INDENT)
    return "\n".join(lines)


def says(value):
    """The docstring as Markdown: examples as code, names in double back-quotes as code."""
    lines, in_example = [], False
    for line in (inspect.getdoc(value) or "").splitlines():
        if line.lstrip().startswith(">>>") and not in_example:
            lines += ["", "```pycon"]
            in_example = True
        elif in_example and not line.strip():
            lines.append("```")
            in_example = False
        lines.append(line if in_example else line.replace("``", "`"))
    return "\n".join(lines + ["```"] * in_example)


def section(name, value):
    if not inspect.isclass(value):
        return [f"## `tm.{name}` {{ #{name} }}\n", "```python-signature", signature(f"tm.{name}", value), "```\n", says(value), ""]
    same = value.__name__ if value.__name__ != name.split(".")[-1] else None
    lines = [f"## `tm.{name}` {{ #{name} }}\n"]
    if same:
        return lines + [f"The same class as [`tm.{same}`](#{same}), under the name that tvmc has for it.\n"]
    lines += [says(value), ""]
    fields = getattr(value, "__dataclass_fields__", {})
    if fields:
        lines += ["Fields: " + ", ".join(f"`{field}: {PRIVATE.sub('', str(of.type))}`" for field, of in fields.items()) + "\n"]
    for member, of in members(value):
        if member == "__init__":
            if not fields:
                lines += ["```python-signature", signature(f"tm.{name}", of), "```\n"]
            continue
        lines += [f"### `{name}.{member}` {{ #{name}.{member} }}\n"]
        if isinstance(of, property):
            lines += [f"Property. {says(of)}\n"]
        elif inspect.isfunction(of):
            prefix = "async " if inspect.iscoroutinefunction(of) else ""
            lines += ["```python-signature", prefix + signature(member, of), "```\n", says(of), ""]
    return lines


def page():
    lines = [HEAD]
    for name, value in public_names():
        lines += section(name, value)
    return "\n".join(lines).replace("```python-signature", "```text")


if __name__ == "__main__":
    sys.stdout.write(page())
