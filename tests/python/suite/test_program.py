"""Load, compile and tune: what the program is asked, and what it says."""

import io
import json

import numpy as np
import pytest

import tensormill as tm
from conftest import DIGITS
from tensormill import _program


def test_load():
    model = tm.load(DIGITS)
    assert [str(one) for one in model.inputs] == ["image: float32[N, 1, 28, 28]"]
    assert [str(one) for one in model.outputs] == ["logits: float32[N, 10]"]
    assert model.ops["Conv"] == 4 and model.parameters == 92458 and model.id.startswith("sha256:")
    assert "5 Relu" in model.summary()


def test_shape_dict_of_load_holds_for_compiles(tmp_path):
    model = tm.load(DIGITS, shape_dict={"image": [2, 1, 28, 28]})
    package = tm.compile(model, opt_level=0, package_path=tmp_path / "p.tar", dump_code="relay", threads=1)
    assert package.inputs[0].shape == (2, 1, 28, 28)
    assert list(tmp_path.glob("p.tar*relay*"))


def test_a_temporary_package_goes_with_its_object():
    package = tm.compile(DIGITS, opt_level=0, input_shapes="image:[1,1,28,28]")
    path = package.path
    assert path.exists()
    del package
    assert not path.parent.exists()


@pytest.mark.parametrize("call, code, words", [
    (lambda: tm.load("nothing.onnx"), "not_found", "nothing.onnx"),
    (lambda: tm.load(__file__), "invalid_model", "test_program.py"),
    (lambda: tm.compile(DIGITS, target="llvm -mcpu=zz"), "invalid_target", '"zz"'),
    (lambda: tm.compile(DIGITS, opt_level=9), "usage", "opt-level"),
    (lambda: tm.compile(DIGITS, input_shapes={"nope": [1]}), "invalid_argument", "nope"),
])
def test_errors_are_the_programs(call, code, words):
    with pytest.raises(tm.ProgramError) as caught:
        call()
    assert caught.value.code == code
    assert words in caught.value.detail
    assert caught.value.exit_code in (2, 3)


def test_a_program_that_is_killed_or_missing(monkeypatch, tmp_path):
    killed = tmp_path / "killed"
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(0o755)
    monkeypatch.setenv("TM_PROGRAM", str(killed))
    with pytest.raises(tm.ProgramError, match="ended by signal 9"):
        tm.load(DIGITS)
    monkeypatch.setenv("TM_PROGRAM", str(tmp_path / "absent"))
    with pytest.raises(tm.ProgramError, match="does not start"):
        tm.load(DIGITS)
    monkeypatch.delenv("TM_PROGRAM")
    monkeypatch.setattr(_program, "HERE", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(tm.ProgramError, match="the client alone"):
        tm.load(DIGITS)


def test_tune_shows_its_progress_and_compile_takes_its_records(tmp_path):
    states = []
    found = tm.tune(DIGITS, tuning_records=tmp_path / "r.json", trials=3, tasks="0", seed=1, min_repeat_ms=1, number=1,
                    repeat=1, input_shapes={"image": [1, 1, 28, 28]}, progress=states.append)
    assert found.trials == 3 and found.best_ms > 0
    assert len(found.records.read_text().splitlines()) >= 3
    assert [state["trial_budget"] for state in states] == [3] * len(states)
    assert states[-1]["trials"] == 3 and states[-1]["best_ms"] <= states[-1]["default_ms"]
    package = tm.compile(DIGITS, tuning_records=found, input_shapes={"image": [1, 1, 28, 28]}, package_path=tmp_path / "t.tar")
    assert package.run(np.zeros((1, 1, 28, 28), np.float32))[0].shape == (1, 10)


def test_tune_measures_at_the_extents_that_are_named(tmp_path):
    found = tm.tune(DIGITS, tuning_records=tmp_path / "r.json", trials=2, tasks="0", seed=1, min_repeat_ms=1, number=1,
                    repeat=1, input_shapes={"image": ["N", 1, 28, 28]}, extents={"N": [2, 5]}, progress=False)
    assert found.trials == 2
    args = [json.loads(line)["input"][2] for line in found.records.read_text().splitlines()]
    assert args and all("f32[2," in one and "f32[5," in one for one in args)
    with pytest.raises(tm.ProgramError, match="no free dim M"):
        tm.tune(DIGITS, tuning_records=tmp_path / "r.json", input_shapes={"image": ["N", 1, 28, 28]}, extents="M=2", progress=False)


def test_bars():
    file = io.StringIO()
    bar = tm.Bar(file)
    for trials in range(0, 101):
        bar.show({"trials": trials, "trial_budget": 100, "default_ms": 2.0, "best_ms": 1.0})
    bar.close()
    lines = file.getvalue().splitlines()
    assert len(lines) == 11 and lines[-1] == "[" + "#" * 24 + "] trial 100/100  model 2.000 -> 1.000 ms"


def test_what_the_program_prints_is_not_trusted_to_be_json():
    with pytest.raises(tm.ProgramError) as caught:
        _program._report("no json", ["error: broken"], 3)
    assert caught.value.detail == "broken" and caught.value.exit_code == 3
    with pytest.raises(tm.ProgramError) as caught:
        _program._report(json.dumps({"error": {"code": "x", "detail": "d", "errors": [{"pointer": "/a", "detail": "b"}, 3]}}),
                         [], 3)
    assert caught.value.errors == (("/a", "b"),) and caught.value.pointer == "/a"
