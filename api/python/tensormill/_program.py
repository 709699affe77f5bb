"""The ``tensormill`` program: where it is, and how it is run. Models are compiled there, in a process of its own: the code
generator is never loaded into Python, where another package may have brought a different one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any, Callable, List, Mapping, Optional, Sequence, Union

from ._errors import ProgramError, details_of

PathLike = Union[str, "os.PathLike[str]"]

HERE = Path(__file__).resolve().parent


def program_path() -> Path:
    """The program: what ``TM_PROGRAM`` names, else the one in this package, else the one on ``PATH``."""
    named = os.environ.get("TM_PROGRAM")
    if named:
        return Path(named)
    bundled = HERE / "_bundle" / "bin" / "tensormill"
    if bundled.exists():
        return bundled
    found = shutil.which("tensormill")
    if found and not _is_own_script(found):
        return Path(found)
    raise ProgramError("not_found", "the tensormill program is not here: this is the client alone. Install the wheel for this "
                       "system or the Debian package, or name the program in TM_PROGRAM", exit_code=3)


def _is_own_script(path: str) -> bool:
    """The script that a wheel puts on PATH starts the program itself."""
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def option(name: str, value: Optional[object]) -> List[str]:
    """The words of an option on the command line; none for None.

    >>> option("opt-level", 3)
    ['--opt-level', '3']
    """
    return [] if value is None else [f"--{name}", str(value)]


def run_program(arguments: Sequence[str], on_line: Optional[Callable[[str], None]] = None) -> Any:
    """Runs the program with ``--json`` and returns its report. ``on_line`` gets each line of its standard error.

    Raises ProgramError with the program's own code and words.
    """
    command = [str(program_path()), "--json", *arguments]
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   encoding="utf-8", errors="replace")
    except OSError as error:
        raise ProgramError("not_found", f"{command[0]} does not start: {error.strerror}", exit_code=3) from error
    lines: List[str] = []

    def read_lines() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line.rstrip("\n"))
            del lines[:-50]
            if on_line is not None:
                on_line(lines[-1])

    reader = threading.Thread(target=read_lines, daemon=True)
    with process:
        reader.start()
        try:
            assert process.stdout is not None
            text = process.stdout.read()
            reader.join()
            code = process.wait()
        except BaseException:
            process.kill()
            raise
    return _report(text, lines, code)


def _report(text: str, lines: Sequence[str], code: int) -> Any:
    try:
        value = json.loads(text) if text.strip() else None
    except ValueError:
        value = None
    if code == 0:
        return value
    error: Mapping[str, Any] = value.get("error", {}) if isinstance(value, dict) else {}
    said = next((line[len("error: "):] for line in lines if line.startswith("error: ")), "")
    if code < 0:
        said = said or f"the program was ended by signal {-code}"
    raise ProgramError(str(error.get("code", "job_failed" if code < 0 else "usage")),
                       str(error.get("detail") or said or "\n".join(lines[-3:])), details_of(error.get("errors")), code)
