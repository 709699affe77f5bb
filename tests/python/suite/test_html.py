"""What notebooks show. Names come from strangers: whatever they are, they are text."""

from html.parser import HTMLParser

import numpy as np
import pytest

import tensormill as tm
from tensormill._client_base import JobBase
from tensormill._native import StepTime

HOSTILE = ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "'\"><svg/onload=alert(1)>", "javascript:alert(1)",
           "</td></table><iframe src=//x>", "a\u202eb\x00\x1b[31m", "&lt;b&gt;", "{{7*7}}", "]]>", "style='x'onclick=1"]
TAGS = {"div", "b", "table", "tr", "th", "td"}


class Reader(HTMLParser):
    """Notes every element and attribute, and what a reader sees."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.text, self.elements = "", []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, attrs))

    def handle_data(self, data):
        self.text += data + "\n"


def model(name):
    facts = {"format": name, "id": name, "inputs": [{"name": name, "dtype": name, "shape": [name, 1]}],
             "outputs": [{"name": name, "dtype": "float32", "shape": []}], "ops": {name: 2}, "parameters": 5}
    from pathlib import Path

    return tm.Model(Path(name.replace("/", "|")), None, facts)


def package(name):
    made = tm.Package.__new__(tm.Package)
    made.path = model(name).path
    made.inputs, made.outputs, made.target = model(name).inputs, model(name).outputs, name
    made.metadata = {"model_digest": name, "num_steps": 1, "weight_bytes": 1, "opt_level": 3,
                     "kernels": [{"symbol": name, "template": name, "origins": [name]}]}
    return made


def things(name):
    profile = tm.Profile((StepTime(name, name, 0.0, 5.0, 1, 1),))
    yield model(name)
    yield package(name)
    yield profile
    yield tm.Result({name: np.zeros(2)}, (0.1,), profile)
    yield JobBase({"id": name, "kind": name, "state": name, "result": {name: name}})
    yield tm.TuningResult(model(name).path, 1, 1.0, 1.0,
                          {"tasks": [{"name": name, "trials": 1, "default_ms": 1.0, "best_ms": 1.0}]})


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_inert(name):
    for thing in things(name):
        reader = Reader()
        html = thing._repr_html_()
        reader.feed(html)
        reader.close()
        assert {tag for tag, _ in reader.elements} <= TAGS, html
        for _, attributes in reader.elements:
            assert all(key == "style" and "alert" not in value and "url" not in value for key, value in attributes), html
        assert html.isascii() or html.isprintable()


def test_what_is_shown():
    html = package("net")._repr_html_()
    assert "<b>Package</b> net" in html and "weights" in html
    long = tm.Result({f"y{i}": np.zeros(1) for i in range(60)})._repr_html_()
    assert "and 20 more" in long and "y59" not in long
