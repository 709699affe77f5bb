"""Parts of what the compiler writes for --dump-code, put into a page at their marks: real code of each stage."""

import re
import subprocess
import tempfile
from pathlib import Path

from generate.tables import ROOT

MARK = re.compile(r"^<!-- dump (\w+) -->$", re.MULTILINE)
MODEL = "tests/models/digits.onnx"
# A named processor, so that each machine makes the same page.
OPTIONS = ["--input-shapes", "image:[1,1,28,28]", "--target", "llvm -mcpu=x86-64-v3", "--dump-code", "relay,te,tir,asm"]
WIDTH = 118


def compiled(program):
    """Stage -> the text of its dump."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "digits.tar"
        subprocess.run([program, "compile", ROOT / MODEL, "-o", package, *OPTIONS], check=True, capture_output=True)
        return {stage: Path(f"{package}.{stage}").read_text(encoding="utf-8") for stage in ("relay", "te", "tir", "asm")}


def narrow(lines):
    return [line if len(line) <= WIDTH else line[:WIDTH - 2] + " …" for line in lines]


def graph(text, wanted):
    """The nodes of the first or the last graph of the dump, without its constants."""
    graphs = re.split(r"^# .*$", text, flags=re.MULTILINE)[1:]
    lines = graphs[wanted].strip().splitlines()
    return [re.sub(r' from \["[^\]]*\]', "", line) for line in lines if " = const " not in line]


def kernel(text):
    """What stands under the name of the first kernel."""
    return re.split(r"^[#;] conv\w+$", text, flags=re.MULTILINE)[1].strip().splitlines()


def inner_loop(lines, most):
    """The first block of assembly whose instructions are mostly multiply-adds."""
    blocks = re.split(r"^(?=\.L\w+:)", "\n".join(lines), flags=re.MULTILINE)
    block = next(one for one in blocks if one.count("vfmadd") * 3 > one.count("\n") > 8)
    return block.expandtabs(8).rstrip().splitlines()[:most]


def parts(program):
    stages = compiled(program)
    te, schedule = "\n".join(kernel(stages["te"])).split("# schedule")
    return {"imported": graph(stages["relay"], 0), "optimized": graph(stages["relay"], -1), "te": te.strip().splitlines(),
            "schedule": re.split(r"^# ", schedule, flags=re.MULTILINE)[0].strip().splitlines(),
            "tir": [*kernel(stages["tir"])[:34], "…"], "asm": [*inner_loop(kernel(stages["asm"]), 24), "…"]}


def filled(page, program):
    """The page with each mark replaced by its part; a mark without a part is a KeyError."""
    found = parts(program)
    return MARK.sub(lambda mark: "\n".join(["```text", *narrow(found[mark.group(1)]), "```"]), page)
