"""The wheels: members, metadata, tags, and code that CPython 3.9 reads."""

import ast
import base64
import csv
import hashlib
import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import tensormill as tm
from conftest import ROOT

BUILDER = ROOT / "api/python/build_wheels.py"
SOURCES = sorted((ROOT / "api/python/tensormill").glob("*.py"))


def build(out, *options):
    subprocess.run([sys.executable, str(BUILDER), "--out", str(out), *map(str, options)], check=True,
                   stdout=subprocess.DEVNULL)
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def pure(tmp_path_factory):
    return build(tmp_path_factory.mktemp("wheels"))


def test_the_client_alone_is_for_every_system(pure):
    assert pure.name == "tensormill-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(pure) as archive:
        names = archive.namelist()
        assert not any("_bundle" in name or name.endswith(".so") for name in names)
        assert "tensormill/py.typed" in names and "tensormill/client.py" in names
        info = "tensormill-0.1.0.dist-info"
        assert "Root-Is-Purelib: true" in archive.read(f"{info}/WHEEL").decode()
        metadata = archive.read(f"{info}/METADATA").decode()
        assert "Requires-Python: >=3.9" in metadata
        assert [line.split(" ", 1)[1] for line in metadata.splitlines() if line.startswith("Requires-Dist")] == [
            "numpy>=1.22", "httpx>=0.23,<1", 'grpcio>=1.49,<2 ; extra == "grpc"']
        for name, digest, size in csv.reader(io.StringIO(archive.read(f"{info}/RECORD").decode())):
            if digest:
                data = archive.read(name)
                expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                assert (digest, int(size)) == (f"sha256={expected}", len(data))
            names.remove(name)
    assert names == []


def test_same_files_give_the_same_wheel(pure, tmp_path):
    assert build(tmp_path).read_bytes() == pure.read_bytes()


def test_a_newer_c_library_than_allowed_is_refused(tmp_path):
    program = tm.program_path()
    done = subprocess.run([sys.executable, "-c", f"""
import sys; sys.path.insert(0, {str(BUILDER.parent)!r})
import build_wheels
from pathlib import Path
print(build_wheels.glibc_of([Path({str(program)!r}), Path({str(tm.library_path())!r})])[0])
print(build_wheels.machine_of({str(program)!r}))
print(sorted(build_wheels.libraries_of({str(tm.library_path())!r})))
"""], check=True, stdout=subprocess.PIPE, text=True)
    floor, machine, needed = done.stdout.splitlines()
    assert ast.literal_eval(floor) <= (2, 36)
    assert machine in ("x86_64", "aarch64")
    # What is loaded into Python needs the C library, and the compiler's own.
    assert set(ast.literal_eval(needed)) <= {"libgcc_s.so.1"}


def test_the_library_exports_the_interface_alone():
    out = subprocess.run(["nm", "-D", "--defined-only", str(tm.library_path())], check=True, stdout=subprocess.PIPE, text=True)
    names = {line.split()[-1].split("@")[0] for line in out.stdout.splitlines()}
    assert {name for name in names if not name.startswith("tm_")} == {"TENSORMILL_0"}
    header = (ROOT / "runtime/capi/tensormill.h").read_text()
    declared = set(re.findall(r"\b(tm_[a-z_0-9]+)\(", re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)))
    assert names - {"TENSORMILL_0"} == declared


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_python_3_9_reads_the_code(path):
    ast.parse(path.read_text(), feature_version=(3, 9))


def test_importing_brings_no_other_library():
    """What a name needs is imported when the name is first used."""
    code = ("import sys, tensormill; print([n for n in ('numpy', 'httpx', 'asyncio', 'ctypes', 'statistics') if n in sys.modules]); "
            "tensormill.load; print('numpy' in sys.modules); tensormill.Package; print('numpy' in sys.modules, 'httpx' in sys.modules); "
            "tensormill.client.Retries; tensormill.Client; print('httpx' in sys.modules, 'grpc' in sys.modules)")
    out = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert out.splitlines() == ["[]", "False", "True False", "True False"]


def test_every_public_name_is_there():
    code = ("import tensormill as tm; assert set(tm.__all__) <= set(dir(tm)); before = {n: getattr(tm, n) for n in tm.__all__}; "
            "from tensormill import *; assert all(globals()[n] is before[n] for n in tm.__all__); "
            "assert tm.TVMCModel is tm.Model and tm.client.Client is tm.Client; print(hasattr(tm, 'nothing'))")
    out = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert out == "False\n"


def test_versions_agree():
    project = (ROOT / "CMakeLists.txt").read_text()
    assert f"project(tensormill VERSION {tm.__version__} " in project
    assert f'version = "{tm.__version__}"' in (ROOT / "api/python/pyproject.toml").read_text()


def test_the_wheel_with_the_program_works_by_itself(tmp_path, monkeypatch):
    """What the wheel holds, laid out as pip does: the demo runs, with no library but the C library from outside."""
    monkeypatch.syspath_prepend(str(BUILDER.parent))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    import build_wheels

    licences = build_wheels.bundle(tmp_path / "bundle", tm.program_path(), tm.library_path())
    assert b"Apache" in licences["libllvm19"]
    site = tmp_path / "site"
    for name, (data, is_program) in build_wheels.members_of(tmp_path / "bundle", "py3-none-x", "0.1.0", licences).items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if is_program else 0o644)
    program = site / "tensormill/_bundle/bin/tensormill"
    modules = sorted((site / "tensormill/_bundle/lib/tensormill").iterdir())
    assert [path.name for path in modules] == ["tensormill-grpc.so", "tensormill-llvm.so", "tensormill-s3.so", "tensormill-xgboost.so"]
    for file in (program, *modules):
        assert {name for name, path in build_wheels.libraries_of(file).items() if site not in path.parents} == set()
    for name in ("TM_PROGRAM", "TM_LIBRARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(site))
    done = subprocess.run([sys.executable, "-m", "tensormill._main", "demo", "--once"], check=True, stdout=subprocess.PIPE,
                          text=True, cwd=tmp_path)
    command = [str(program), "serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data"), "--set", "grpc.listen=127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as served:
        first = next(line for line in served.stdout if line.startswith(("gRPC on ", "listening on ")))
        served.terminate()
        served.stdout.read()
    assert first.startswith("gRPC on ") and served.returncode == 0
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("   ")]
    assert len(rows) == 5 and rows[0][0] == "7"
    usage = subprocess.run([sys.executable, "-m", "tensormill._main", "demo", "--twice"], check=False, stderr=subprocess.PIPE)
    assert usage.returncode == 2
    version = subprocess.run([sys.executable, "-m", "tensormill._main", "--version"], check=True, stdout=subprocess.PIPE, text=True)
    assert version.stdout.startswith("tensormill 0.1.0")
