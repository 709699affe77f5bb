"""Plants the bugs of planted.toml one at a time and fuzzes: planted.py [NAME...].

Each must be found within LIMIT_S seconds of CPU time from the committed corpus alone; stops with 1 when one is not. The programs of
build-fuzz/ must be there: of each bug only the changed file, a copy in build-planted/, is compiled, with those of its batch, and
linked ahead of the libraries, so that it stands in for the sound one. Nothing of the tree is touched."""

import json
import math
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build-fuzz"
FOLDER = ROOT / "build-planted"
LIMIT_S = 120
FLAGS = ["-timeout=20", "-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-print_final_stats=1", "-seed=1"]

BUGS = tomllib.loads((ROOT / "tests/fuzz/planted.toml").read_text(encoding="utf-8"))["bug"]


def call(command, **options):
    """(exit code, output)"""
    done = subprocess.run(command, cwd=BUILD, text=True, errors="replace", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)
    return done.returncode, done.stdout


def must(command, **options):
    code, output = call(command, **options)
    if code != 0:
        sys.exit(f"{command} stopped with {code}:\n{output[-4000:]}")
    return output


def compiled_as(original):
    """(its row of the compile commands, the text that is compiled) of a file that is compiled alone or in a batch."""
    include = f'#include "{original.relative_to(ROOT)}"\n'
    for row in json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8")):
        if row["file"] == str(original):
            return row, include
        if "/batches/" in row["file"] and include in (text := Path(row["file"]).read_text(encoding="utf-8")):
            return row, text
    sys.exit(f"nothing compiles {original}")


def compile_changed(bug):
    """The object that has the changed file in the place of the sound one."""
    original = ROOT / bug["file"]
    text = original.read_text(encoding="utf-8")
    if text.count(bug["find"]) != 1:
        sys.exit(f"{bug['file']} does not have the text once: {bug['find']}")
    changed, source, target = FOLDER / original.name, FOLDER / "planted_source.cc", FOLDER / "planted.o"
    changed.write_text(text.replace(bug["find"], bug["replace"]), encoding="utf-8")
    row, compiled = compiled_as(original)
    source.write_text(compiled.replace(f'"{original.relative_to(ROOT)}"', f'"{changed}"'), encoding="utf-8")
    words = shlex.split(row["command"])
    words[words.index("-o") + 1], words[words.index("-c") + 1] = str(target), str(source)
    must(words)
    return target


def link_with(target, planted):
    """The target's program in which `planted` comes before the libraries: the linker takes what it meets first."""
    command = must(["ninja", "-t", "commands", "-s", f"bin/fuzz/{target}"]).strip().splitlines()[-1]
    program = FOLDER / target
    entry = next(word for word in command.split() if word.endswith("libfuzzer_entry.cc.o"))
    command = command.replace(entry, f"{entry} {shlex.quote(str(planted))}", 1)
    must(re.sub(r" -o \S+", f" -o {shlex.quote(str(program))}", command, count=1), shell=True)
    return program


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def fuzz(program, target, seconds):
    """(exit code, output); what it finds stays in build-planted/. The program counts seconds of the clock: on a busy machine it
    goes on, from what it has kept, until those of its CPU time are used up."""
    work = FOLDER / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    end = cpu_seconds() + seconds
    code, outputs = 0, []
    while code == 0 and (left := end - cpu_seconds()) > 0:
        code, output = call([program, *FLAGS, f"-max_total_time={math.ceil(left)}", f"-artifact_prefix={FOLDER}/", work,
                             ROOT / "tests/fuzz/corpus" / target], env={**os.environ, "LLVM_PROFILE_FILE": "/dev/null"})
        outputs.append(output)
    return code, "\n".join(outputs)


def finding(output):
    """The line that says what was found."""
    for word in ("what():", "runtime error: ", "ERROR: "):
        for line in output.splitlines():
            if word in line:
                return line[line.index(word) + len(word):].strip()[:90]
    return "a finding"


def number_of_runs(output):
    runs = re.findall(r"^stat::number_of_executed_units:\s*(\d+)", output, re.MULTILINE)
    return sum(map(int, runs)) or max(map(int, re.findall(r"^#(\d+)", output, re.MULTILINE)), default=0)


def main(names):
    bugs = [bug for bug in BUGS if not names or bug["name"] in names]
    FOLDER.mkdir(exist_ok=True)
    targets = sorted({bug["target"] for bug in bugs})
    must(["cmake", "--build", ".", "--parallel", str(os.cpu_count() or 2), "--target", *(f"fuzz_{one}" for one in targets)])
    for target in targets:
        code, output = fuzz(BUILD / "bin/fuzz" / target, target, 2)
        if code != 0:
            sys.exit(f"{target} has a finding without any bug:\n{output[-3000:]}")
    found = 0
    for bug in bugs:
        program = link_with(bug["target"], compile_changed(bug))
        started = cpu_seconds()
        code, output = fuzz(program, bug["target"], LIMIT_S)
        found += code != 0
        words = f"{cpu_seconds() - started:6.1f} s, {number_of_runs(output)} runs"
        print(f"  {bug['target']:10} {bug['name']:34} {words}: {finding(output) if code else 'NOT FOUND'}", flush=True)
    print(f"found {found} of {len(bugs)}")
    return 0 if found == len(bugs) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
