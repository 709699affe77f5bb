#!/usr/bin/env python3
"""The site of the documents: pages, pictures and what is generated from tables, program and package, built by MkDocs.

    build.py OUT [--program PROGRAM]

OUT is replaced. Run by the Python of `venv` (./dev docs makes it); the page of the Python package is made by the Python
of `tests/python/venv`, which has what the package needs.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import draw  # noqa: E402
from generate import c_api, cli, compiler_tables, dumps, errors, http_api, settings  # noqa: E402

PYTHON_OF_PACKAGE = ROOT / "tests/python/venv/bin/python"
GENERATED = ["cli", "http", "python", "c", "settings", "errors", "operators", "targets"]


def openapi_of(program):
    """What a server of this program says at /openapi.json."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "serve", "--listen", "127.0.0.1:0", "--data", f"{folder}/data"]
        with open(f"{folder}/log", "w", encoding="utf-8") as log, subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, text=True) as server:
            try:
                address = next((line.split()[-1] for line in server.stdout if line.startswith("listening on http://")), None)
                if address is None:
                    raise RuntimeError("the server ended: " + Path(f"{folder}/log").read_text(encoding="utf-8"))
                with build_opener(ProxyHandler({})).open(f"{address}/openapi.json") as answer:
                    return json.load(answer)
            finally:
                server.terminate()


def python_page():
    done = subprocess.run([PYTHON_OF_PACKAGE, "-m", "generate.python_api"], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, cwd=HERE)
    if done.returncode != 0:
        raise RuntimeError(f"the page of the Python package: {done.stderr}")
    return done.stdout


def sources(folder, program):
    """Everything that MkDocs reads, in one folder."""
    shutil.copytree(HERE / "pages", folder, dirs_exist_ok=True)
    shutil.copytree(HERE / "pictures", folder / "pictures")
    shutil.copytree(HERE / "assets", folder / "assets")
    for name, text in draw.pictures().items():
        (folder / "pictures" / f"{name}.svg").write_text(text, encoding="utf-8")
    shutil.copyfile(ROOT / "bench/results/models.svg", folder / "pictures/models.svg")
    reference = {"cli": cli.page(program), "http": http_api.page(openapi_of(program)), "python": python_page(), "c": c_api.page(),
                 "settings": settings.page(), "errors": errors.page(), "operators": compiler_tables.operators_page(),
                 "targets": compiler_tables.targets_page()}
    for name in GENERATED:
        (folder / "reference" / f"{name}.md").write_text(reference[name], encoding="utf-8")
    page = folder / "explanation/compiler.md"
    page.write_text(dumps.filled(page.read_text(encoding="utf-8"), program), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--program", type=Path, default=ROOT / "build/bin/tensormill")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sources(Path(folder) / "pages", str(options.program.resolve()))
        environment = {**os.environ, "TM_DOCS_SOURCES": f"{folder}/pages", "TM_DOCS_SITE": str(options.out.resolve()),
                       "NO_MKDOCS_2_WARNING": "true", "SOURCE_DATE_EPOCH": "0"}
        done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--clean", "-f", HERE / "mkdocs.yml"],
                              env=environment, check=False)
    if done.returncode == 0:
        print(f"the site is in {options.out}: open {options.out}/index.html")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
