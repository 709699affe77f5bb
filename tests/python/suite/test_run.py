"""Runs in this process, through the runtime's C interface."""

import ctypes
import os
import threading

import numpy as np
import pytest

import tensormill as tm
from tensormill import _npz
from tensormill._memory import is_lendable
from tensormill._native import library
from tensormill._program import run_program


def picture(seed=0, count=1):
    x = tm.empty((count, 1, 28, 28))
    x[:] = np.random.default_rng(seed).random(x.shape, dtype=np.float32)
    return x


class Lent:
    """A tensor of another framework, which numpy does not know as an array."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_answers_are_the_programs_bit_for_bit(fixed, tmp_path):
    x = picture()
    (tmp_path / "in.npz").write_bytes(_npz.dumps({"image": x}))
    run_program(["run", str(fixed.path), "-i", str(tmp_path / "in.npz"), "-o", str(tmp_path / "out.npz")])
    expected = _npz.loads((tmp_path / "out.npz").read_bytes())["logits"]
    result = fixed.run(x)
    assert list(result) == ["logits"]
    for got in (result["logits"], result[0], result.get_output("output_0"), np.asarray(result), fixed.run(image=x).numpy(),
                fixed.run({"image": x})[0], fixed.run(input_0=x)[0], fixed.run(x.tolist() and np.array(x))[0],
                tm.run(fixed, {"image": x})[0], tm.run(fixed, tmp_path / "in.npz")[0]):
        assert got.tobytes() == expected.tobytes()


def test_inputs_are_read_where_they_lie(fixed):
    x = picture()
    executor = fixed.executor()
    assert executor.set_input(0, x)
    executor.run()
    first = executor.output(0)
    x[:] = picture(1)
    executor.run()
    assert not np.array_equal(executor.output(0), first)
    # An array that kernels cannot read as it lies is copied.
    askew = np.zeros(28 * 28 + 64, np.float32)[1:785].reshape(1, 1, 28, 28)
    askew[:] = picture()
    if askew.ctypes.data % 64:
        assert not executor.set_input(0, askew)
    assert np.array_equal(fixed.run(askew)[0], first)
    assert not executor.set_input(0, x, copy=True)
    assert np.array_equal(fixed.run(np.asfortranarray(picture()))[0], first)


def test_outputs_are_written_where_they_lie_and_stay(fixed):
    executor = fixed.executor()
    executor.set_input(0, picture())
    (lent,) = executor.lend_new_outputs()
    executor.run()
    assert executor.output(0, lent).ctypes.data == lent.ctypes.data
    first = fixed.run(picture())[0]
    kept = first.copy()
    assert not np.array_equal(fixed.run(picture(1))[0], kept)
    assert np.array_equal(first, kept)


@pytest.mark.parametrize("count", [1, 420])
def test_a_call_gives_what_setting_running_and_getting_give(free, count):
    one, other = free.executor(), free.executor()
    for seed in range(3):
        x = picture(seed, count)
        other.set_input(0, x)
        other.run()
        (found,) = one.call([x])
        assert np.array_equal(found, other.output(0))
        # Arrays that are read-only, of another order, or not where kernels can read them.
        still = x.copy()
        still.flags.writeable = False
        askew = np.zeros(x.size + 17, np.float32)[1:x.size + 1].reshape(x.shape)
        askew[:] = x
        for same in (still, np.asfortranarray(x), askew, x.astype(">f4"), x[:, :, :, ::-1].copy()[:, :, :, ::-1]):
            assert np.array_equal(one.call([same])[0], found)


def test_outputs_of_calls_are_the_callers_own_at_any_shape(free):
    executor = free.executor()
    alone = [free.executor().call([picture(7, count)])[0] for count in (1, 420, 3, 420, 5)]
    kept = [executor.call([picture(7, count)])[0] for count in (1, 420, 3, 420, 5)]
    for found, expected in zip(kept, alone):
        assert found.shape == expected.shape and np.array_equal(found, expected)
    with pytest.raises(tm.ExecutorError, match="float64"):
        executor.call([picture().astype("f8")])
    with pytest.raises(tm.ExecutorError, match="0 inputs"):
        executor.call([])
    assert np.array_equal(executor.call([picture(7)])[0], alone[0])


def test_dlpack_shares_memory_both_ways(fixed):
    x = picture()
    seen = tm.from_dlpack(Lent(x))
    assert seen.ctypes.data == x.ctypes.data and seen.shape == x.shape and seen.dtype == x.dtype
    assert not seen.flags.writeable
    y = fixed.run(Lent(x))
    assert np.array_equal(y[0], fixed.run(x)[0])
    assert np.from_dlpack(y).ctypes.data == y[0].ctypes.data
    transposed = tm.from_dlpack(Lent(np.arange(6.0).reshape(2, 3).T))
    assert transposed.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_dlpack_of_another_device_is_refused():
    class OnDevice(Lent):
        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(TypeError, match="this machine's memory"):
        tm.from_dlpack(OnDevice(np.zeros(1)))


def test_what_is_read_in_place_can_be_read_by_whole_vectors():
    x = tm.empty((5,))
    assert is_lendable(x, x.ctypes.data)
    assert is_lendable(x[:1], x.ctypes.data)
    assert not is_lendable(x[1:], x[1:].ctypes.data)
    # An array at the end of its memory, where the next page may be another's.
    whole = np.empty(4096 * 3, np.uint8)
    start = -whole.ctypes.data % 4096
    end_of_page = whole[start:start + 4096]
    assert is_lendable(end_of_page, end_of_page.ctypes.data)
    alone = np.frombuffer((ctypes.c_char * 4096).from_address(end_of_page.ctypes.data), np.uint8)
    assert not is_lendable(alone, alone.ctypes.data)


def test_free_dims(free):
    assert free.inputs[0].shape == ("N", 1, 28, 28)
    together = free.run(picture(0, 5))[0]
    assert together.shape == (5, 10)
    for count in (1, 3, 5, 2):
        alone = free.run(picture(0, 5)[:count])[0]
        assert np.array_equal(alone, together[:count])


@pytest.mark.parametrize("inputs, words", [
    ((np.zeros((2, 1, 28, 28), np.float32),), "float32 [2,1,28,28], expected float32 [1,1,28,28]"),
    ((np.zeros((1, 1, 28, 28)),), "float64"),
    ((), "is not set"),
    (({"nope": np.zeros(1)},), 'no input "nope"; it has "image"'),
    ((np.zeros(1), np.zeros(1)), "2 inputs are given, the model has 1"),
])
def test_errors_name_both_sides(fixed, inputs, words):
    with pytest.raises(tm.ExecutorError) as caught:
        fixed.run(*inputs)
    assert caught.value.code == "invalid_tensor" and caught.value.number == -1
    assert words in caught.value.detail
    # An executor that refused serves the next run.
    assert fixed.run(picture())[0].shape == (1, 10)


def test_an_input_of_an_earlier_run_is_not_taken(fixed):
    fixed.run(picture())
    with pytest.raises(tm.ExecutorError, match="is not set"):
        fixed.run({})


def test_broken_packages(tmp_path, fixed):
    with pytest.raises(tm.ExecutorError) as caught:
        tm.Package(tmp_path / "nothing.tar")
    assert caught.value.code == "not_found"
    data = fixed.path.read_bytes()
    with pytest.raises(tm.ExecutorError) as caught:
        tm.Package.from_bytes(data[:5000])
    assert caught.value.code == "invalid_package"
    assert np.array_equal(tm.Package.from_bytes(data).run(picture())[0], fixed.run(picture())[0])
    with pytest.raises(tm.ExecutorError) as caught:
        tm.Package(fixed.path, max_memory=10).run(picture())
    assert caught.value.code == "memory_budget"


def test_threads_run_one_package_at_once(free):
    # The lock of the interpreter is free while the library works: only PyDLL would hold it.
    assert not isinstance(library(), ctypes.PyDLL)
    expected = [free.run(picture(seed, 3))[0] for seed in range(4)]
    wrong = []

    def work(seed):
        for _ in range(20):
            if not np.array_equal(free.run(picture(seed, 3))[0], expected[seed]):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(fixed):
    expected = fixed.run(picture())[0]
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if np.array_equal(fixed.run(picture())[0], expected) else 2
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_runtime_of_ones_own(fixed):
    package = tm.Package(fixed.path, tm.Runtime(threads=1))
    assert np.array_equal(package.run(picture())[0], fixed.run(picture())[0])
    with pytest.raises(tm.ExecutorError, match="threads is 0"):
        tm.Runtime(threads=0)


def test_profile_and_times(fixed):
    result = fixed.run(picture(), profile=True, repeat=3, number=2)
    assert len(result.times) == 3 and all(time > 0 for time in result.times)
    assert len(result.profile.steps) == fixed.metadata["num_steps"]
    assert any(step.origin.startswith("node_conv") for step in result.profile.steps)
    assert "mean (ms)" in result.format_times()
    assert fixed.run(picture()).profile is None


def test_results_are_saved_as_npz(fixed, tmp_path):
    result = fixed.run(picture())
    result.save(tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as archive:
        assert np.array_equal(archive["logits"], result[0])
    with pytest.raises(KeyError, match="logits"):
        result["nope"]


def field(number, value):
    """Of a message of ONNX's protobuf: bytes or text."""
    data = value if isinstance(value, bytes) else value.encode()
    return bytes([number << 3 | 2, len(data)]) + data


def whole(number, value):
    """A small number; the field's own number may be above 15."""
    key = number << 3
    return (bytes([key]) if key < 128 else bytes([key & 127 | 128, key >> 7])) + bytes([value])


def tensor(name, kind, dims):
    shape = b"".join(field(1, field(2, dim) if isinstance(dim, str) else whole(1, dim)) for dim in dims or ())
    return field(1, name) + field(2, field(1, whole(1, kind) + (field(2, shape) if dims is not None else b"")))


def compiled(folder, operator, inputs, output, opset, attribute=b"", **options):
    """A package of one node, made of an ONNX file that is written here."""
    node = b"".join(field(1, name) for name, _, _ in inputs) + field(2, output[0]) + field(4, operator) + attribute
    graph = field(1, node) + field(2, "g") + b"".join(field(11, tensor(*one)) for one in inputs) + field(12, tensor(*output))
    (folder / "model.onnx").write_bytes(whole(1, 8) + field(7, graph) + field(8, field(1, "") + whole(2, opset)))
    return tm.compile(folder / "model.onnx", package_path=folder / "model.tar", **options)


def test_shapes_without_kernels_are_interpreted_by_the_program(tmp_path):
    """Reshape to a rank that a run says has no kernels: the program interprets the model that the package holds."""
    package = compiled(tmp_path, "Reshape", [("x", 1, ["A", "B"]), ("shape", 7, ["R"])], ("y", 1, None), 13)
    assert package._loaded.holds_model
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    got = package.run({"x": x, "shape": np.array([2, 6], np.int64)})["y"]
    assert got.tolist() == x.reshape(2, 6).tolist()
    again = tm.Package.from_bytes(package.path.read_bytes()).run({"x": x, "shape": np.array([12], np.int64)})["y"]
    assert again.tolist() == x.ravel().tolist()


@pytest.mark.parametrize("shape", [[3, 4], ["N", 4]])
def test_extents_that_data_decides_are_those_of_each_run(tmp_path, shape):
    package = compiled(tmp_path, "NonZero", [("x", 1, shape)], ("y", 7, None), 13)
    for seed in range(5):
        values = np.random.default_rng(seed).integers(0, 2, (3, 4)).astype(np.float32)
        assert np.array_equal(package.run(values)[0], np.array(np.nonzero(values)))
    assert package.run(np.zeros((3, 4), np.float32))[0].shape == (2, 0)


def test_texts(tmp_path):
    package = compiled(tmp_path, "StringConcat", [("a", 8, [2]), ("b", 8, [2])], ("y", 8, [2]), 20)
    assert package.run(np.array(["x", "\u00e4"]), ["1", "longer"])["y"].tolist() == ["x1", "\u00e4longer"]
    assert package.run(np.array([b"x", b""]), np.array(["1", "2"], object))[0].tolist() == ["x1", "2"]


def test_steps_that_the_library_lacks_are_run_by_the_program(tmp_path):
    pattern = field(5, field(1, "pattern") + field(4, "[0-9]+") + whole(20, 3))
    package = compiled(tmp_path, "RegexFullMatch", [("x", 8, [3])], ("y", 9, [3]), 20, pattern)
    assert package.run(np.array(["12", "1x", ""]))["y"].tolist() == [True, False, False]


def test_types_that_numpy_lacks_are_their_bits(tmp_path):
    package = compiled(tmp_path, "Identity", [("x", 16, [2])], ("y", 16, [2]), 14)
    bits = np.array([0x3F80, 0xC000], np.uint16)
    assert package.inputs[0].dtype == "bfloat16"
    assert package.run(bits)["y"].tolist() == bits.tolist()
    with pytest.raises(tm.ExecutorError, match="bfloat16"):
        package.run(bits.astype(np.float32))
