"""The examples of the documents run as they stand, but for the server's address."""

import re
import shutil

import pytest

from conftest import DIGITS, ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


PAGES = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "api/docs/pages").rglob("*.md")) if BLOCK.search(path.read_text())]


def test_pages_have_examples():
    assert "api/docs/pages/tutorials/python.md" in PAGES


@pytest.mark.parametrize("document", ["README.md", "api/python/README.md", *PAGES])
def test_examples(document, server, tmp_path, monkeypatch):
    shutil.copyfile(DIGITS, tmp_path / "digits.onnx")
    # The README's reader stands at the top of a checkout.
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/models").symlink_to(DIGITS.parent)
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / document).read_text())
    assert blocks
    names = {}
    for block in blocks:
        exec(compile(block.replace("http://127.0.0.1:8080", server), document, "exec"), names)
