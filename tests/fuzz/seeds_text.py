"""Seeds in text: heads of requests, their bodies, targets, records, plans."""

import json
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"


def head_seeds():
    def head(line, *fields):
        return "\r\n".join([line, *fields, "", ""])

    host = "Host: h"
    yield "range", head("GET /a HTTP/1.1", host, "Range: bytes=10-19")
    yield "range_open", head("GET /a HTTP/1.1", host, "Range: bytes=990-", 'If-Range: "tag"')
    yield "range_suffix", head("GET /a HTTP/1.1", host, "Range: bytes=-5")
    yield "range_outside", head("GET /a HTTP/1.1", host, "Range: bytes=1000-1001")
    yield "range_of_other_unit", head("GET /a HTTP/1.1", host, "Range: lines=1-2")
    yield "range_broken", head("GET /a HTTP/1.1", host, "Range: bytes=9-1")
    yield "none_match", head("GET /a HTTP/1.1", host, 'If-None-Match: "x", W/"tag"')
    yield "match", head("GET /a HTTP/1.1", host, 'If-Match: "other"')
    yield "match_any", head("GET /a HTTP/1.1", host, "If-Match: *")
    yield "options", head("OPTIONS * HTTP/1.1", host)
    yield "absolute_query", head("GET http://h?x=1 HTTP/1.1", host)
    yield "fragment", head("GET /a#b HTTP/1.1", host)
    yield "relative", head("GET a HTTP/1.1", host)
    yield "utf8", head("GET /%C3%A4/%F0%9F%98%80?a=%e2%82%ac+b&c HTTP/1.1", host)
    yield "not_utf8", head("GET /%C3%28 HTTP/1.1", host)
    yield "not_ascii", head("GET /\u00e4 HTTP/1.1", host)
    yield "bad_escape", head("GET /%4 HTTP/1.1", host)
    yield "control", head("GET /a HTTP/1.1", host, "X: \x01")
    yield "two_lengths", head("POST /a HTTP/1.1", host, "Content-Length: 1", "Content-Length: 1")
    yield "bad_length", head("POST /a HTTP/1.1", host, "Content-Length: 1x")
    yield "gzip_coding", head("POST /a HTTP/1.1", host, "Transfer-Encoding: gzip")
    yield "accept", head("GET /a?limit=many HTTP/1.1", host, "Accept: application/*;q=0.5, application/x-npz;q=0.1",
                         "Content-Type: text/plain; charset=utf-8")
    yield "flag", head("GET /a?limit=7&wait=maybe HTTP/1.1", host)
    yield "folded", head("GET /a HTTP/1.1", host, " folded: 1")
    yield "two_hosts", head("GET /a HTTP/1.1", host, host)


def json_seeds():
    yield "deepest.json", "[" * 64 + "]" * 64
    yield "deeper.json", "[" * 65 + "]" * 65
    yield "escapes.json", r'{"a\u0000\ud83d\ude00":"\n\"\\","b":[1e-300,-0.0,18446744073709551615,null,true]}'
    yield "not_utf8.json", b'"\xff"'
    yield "half.json", r'["\ud800"]'
    yield "other_half.json", r'["\udc00"]'
    yield "zero_byte.json", b"[1]\0"
    yield "numbers.json", "[123456789,-1.5e+10,0.1,1e-400,-9223372036854775808,18446744073709551616,123456789012345678901234567890e-25]"
    yield "too_large.json", "[1e400]"
    yield "long_number.json", "[0." + "1" * 5000 + "]"
    yield "mark.json", b"\xef\xbb\xbf[1]"
    yield "words.json", "[NaN,Infinity]"
    yield "behind.json", "{} x"
    yield "wide.json", "[" + "{}," * 200 + "{}]"


def number_seeds():
    """The first byte is the type's place in the tables: dtype.def, then narrow.def."""
    values = {"f32": (0, "0.1"), "f32_large": (0, "1e39"), "f32_word": (0, "inf"), "f64": (1, "1e-400"), "f64_large": (1, "1e400"),
              "f16": (2, "65519.9"), "f16_large": (2, "65520"), "bf16": (3, "3.4e38"), "i8": (4, "-128"), "i8_large": (4, "300"),
              "i16": (5, "32768"), "i32_real": (6, "1.5"), "i64": (7, "-9223372036854775808"), "u8": (8, "255"), "u8_large": (8, "256"),
              "u16": (9, "65536"), "u32": (10, "4294967295"), "u64": (11, "18446744073709551615"), "u64_minus": (11, "-1"),
              "bool": (12, "true"), "bool_two": (12, "2"), "f8": (13, "464"), "f8_large": (15, "1e9"), "e8m0": (17, "-1"),
              "f4": (18, "7"), "i4": (19, "-9"), "u4": (20, "15"), "str": (21, "1"), "i2": (22, "-2"), "u2": (23, "4")}
    for name, (place, text) in values.items():
        yield f"{name}.bin", bytes([place]) + text.encode()


def extent_seeds():
    texts = {"pool": "(H+1)//2", "product": "N*S - 2*(N+1)*(S-1)", "least": "min(N, 8, max(S, 3) - 1)", "rest": "H % 4 + 3*(W % H)",
             "scaled": "scaled(min(H, W), 2.5f)", "ratio": "scaled_by_ratio(H, W, 3)//rounded_by_ratio(H, 2, W + 1)",
             "quoted": "'past length' + 'it\\'s'", "nested": "((N//2 + 1)//3 - -7)//(2*N)", "exact": "(N*N - 1)//(N + 1)",
             "large": "9223372036854775807*N", "lowest": "-9223372036854775808 % N", "zero": "N//0 + N % 0", "open": "(N + 1",
             "factor": "scaled(N, 1e-40f)", "constant": "7 - 2*-3"}
    for name, text in texts.items():
        yield f"{name}.txt", text


def v2_seeds():
    def infer(*inputs, **more):
        return json.dumps({"inputs": list(inputs), **more})

    x = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [[1.5, -2, 3e1]]}
    yield "plain.bin", infer(x, id="7", parameters={"binary_data_output": True, "timeout": 5, "priority": 1},
                             outputs=[{"name": "y", "parameters": {"classification": 2}}, {"name": "z"}])
    yield "sorted.bin", json.dumps({"inputs": [x, {**x, "datatype": "INT8", "data": [1, 2, 3]}]}, sort_keys=True)
    yield "texts.bin", infer({**x, "shape": [2], "datatype": "BYTES", "data": ["a", "\u20ac"]})
    yield "texts_first.bin", '{"inputs":[{"data":[["a"],["b"]],"shape":[2,1],"datatype":"BYTES","name":"s"}]}'
    yield "binary.bin", infer({"name": "x", "shape": [2], "datatype": "INT16", "parameters": {"binary_data_size": 4}}) + "\0abcd"
    yield "binary_texts.bin", (infer({"name": "x", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": 6}})
                               + "\0\x02\0\0\0ab")
    yield "out_of_range.bin", infer({**x, "datatype": "UINT8", "data": [1, 2, 300]})
    yield "bools.bin", infer({**x, "datatype": "BOOL", "data": [True, 0, 2]})
    yield "too_many.bin", infer({**x, "data": [1, 2, 3, 4]})
    yield "too_few.bin", infer({**x, "data": [1]})
    yield "object.bin", infer({**x, "data": [1, {"a": 1}]})
    yield "no_array.bin", infer({**x, "data": 1})
    yield "both.bin", infer({**x, "parameters": {"binary_data_size": 12}})
    yield "neither.bin", infer({"name": "x", "shape": [1], "datatype": "FP32"})
    yield "unknown.bin", infer({**x, "datatype": "FP33"})
    yield "dims.bin", infer({**x, "shape": [-1, 1.5]})
    yield "bare.bin", '{"inputs":[1]}'
    yield "list.bin", "[{}]"
    yield "empty.bin", infer({**x, "shape": [2, 0], "data": [[], []]})
    yield "sequence.bin", infer(x, parameters={"sequence_id": 4})
    yield "reserved.bin", infer(x, parameters={"triton_x": 1, "own": {}})
    yield "sequence_named.bin", infer(x, parameters={"sequence_id": "s", "sequence_start": True, "sequence_end": True})
    for name, parameters in (("no_sequence", {"sequence_start": True}), ("long_sequence", {"sequence_id": "s" * 129}),
                             ("sequence_of_none", {"sequence_id": None}), ("sequence_of_list", {"sequence_id": -0.5})):
        yield f"{name}.bin", infer(x, parameters=parameters)
    place = {"shared_memory_region": "r", "shared_memory_byte_size": 6}
    for name, more, size, offset in (("shared", {"shape": [3], "datatype": "INT16"}, 6, None), ("shared_part", {"shape": [1], "datatype": "INT16"}, 2, 4),
                                     ("shared_far", {"shape": [1], "datatype": "INT16"}, 2, 63), ("shared_short", {"shape": [4], "datatype": "INT16"}, 6, None),
                                     ("shared_large", {"shape": [1 << 30], "datatype": "INT16"}, 1 << 31, None), ("shared_texts", {"shape": [1], "datatype": "BYTES"}, 6, None),
                                     ("shared_pictures", {"shape": [1, 1], "datatype": "BYTES"}, 6, None)):
        parameters = {**place, "shared_memory_byte_size": size, **({} if offset is None else {"shared_memory_offset": offset})}
        yield f"{name}.bin", infer({"name": "x", **more, "parameters": parameters}) + "\0\x02\0\0\0ab"
    yield "shared_unsized.bin", infer({"name": "x", "shape": [3], "datatype": "INT16", "parameters": {"shared_memory_region": "r"}})
    yield "shared_both.bin", infer({**x, "parameters": place})
    yield "shared_outputs.bin", infer(x, outputs=[{"name": "y", "parameters": place}, {"name": "z", "parameters": {**place, "classification": 1}}])
    yield "outputs_twice.bin", infer(x, outputs=[{"name": "y"}, {"name": "y"}])
    yield "outputs_bare.bin", infer(x, outputs=[1])
    texts = {"name": "x", "shape": [2], "datatype": "BYTES", "parameters": {"binary_data_size": 12}}
    yield "pictures.bin", infer(texts) + "\0\x02\0\0\0ab\x02\0\0\0cd"
    yield "pictures_of_many.bin", infer({**texts, "shape": [1, 2]}) + "\0\x02\0\0\0ab\x02\0\0\0cd"
    yield "pictures_and_more.bin", infer(texts, x) + "\0\x02\0\0\0ab\x02\0\0\0cd"
    yield "texts_too_many.bin", infer({**texts, "shape": [1]}) + "\0\x02\0\0\0ab\x02\0\0\0cd"
    yield "texts_behind.bin", infer({**texts, "shape": [1]}) + "\0\x09\0\0\0ab\x02\0\0\0cd"
    yield "binary_short.bin", infer({**texts, "datatype": "INT16", "shape": [6]}) + "\0ab"
    yield "binary_left.bin", infer(x) + "\0abcd"
    yield "raw.bin", "\0abcd"


def body_seeds():
    compile_job = {"kind": "compile", "model": "m", "target": {"kind": "llvm", "mcpu": "haswell"},
                   "input_shapes": {"x": [-1, "N", 3]}, "shape_buckets": {"N": [1, 8], "M": "1,2,4"},
                   "pass_config": {"a": "b", "c": 1, "d": True}, "disabled_passes": ["x"], "desired_layout": "NHWC",
                   "tuning_records": "auto", "force": True, "opt_level": 2, "priority": 1}
    yield "compile_all.json", json.dumps(compile_job)
    yield "compile_wrong.json", json.dumps({**compile_job, "input_shapes": {"x": "3", "y": ["", 1 << 70]},
                                            "shape_buckets": {"N": [8, 1], "M": "x", "K": []}, "pass_config": {"a": None},
                                            "desired_layout": "NCWH", "tuning_records": 1, "force": 1, "opt_level": 9,
                                            "verify": "maybe", "a/b~c": 1})
    yield "no_kind.json", '{"kind":"other"}'
    yield "tune_wrong.json", json.dumps({"kind": "tune", "model": "", "target": 1, "trials": "many", "prior_records": 1,
                                         "time_budget_s": "x"})
    yield "deployment_wrong.json", json.dumps({"package": 1, "version": 1, "labels": [1], "preprocess": [], "max_batch": "x",
                                               "instances": -1, "warmup": "yes"})
    yield from job_seeds(compile_job)
    yield from deployment_seeds()
    yield from worker_seeds()
    key = {"name": "ci", "scopes": ["read", "infer:digits"], "expires_at": "2027-01-31T12:00:00Z"}
    yield "key.json", json.dumps(key)
    yield "key_wrong.json", json.dumps({"name": "local", "scopes": ["x", "infer:", ""], "expires_at": "soon"})
    yield "key_for_nothing.json", json.dumps({**key, "scopes": []})


BLOB = "sha256:" + "0" * 64


def job_seeds(compile_job):
    tune = {**compile_job, "kind": "tune", "trials": 64, "time_budget_s": 1.5, "tuner": "xgb-rank", "autoscheduler": True, "tasks": "0,2-3",
            "extents": {"N": [1, 8], "M": "1,2,4"}, "early_stopping": 10, "prior_records": BLOB, "exclusive": True, "threads": 2, "number": 3, "repeat": 2, "min_repeat_ms": 1, "seed": 7,
            "on": "board=rpi4,arch=aarch64"}
    yield "tune_all.json", json.dumps(tune)
    yield "tune_below.json", json.dumps({**tune, "prior_records": "x", "extents": {"N": [8, 1], "K": []}, "time_budget_s": -1, "on": "=", "min_repeat_ms": -2})
    values = {"n": 3, "f": [1.5, [True, None]]}
    yield "compile_values.json", json.dumps({**compile_job, "input_values": values, "outputs": ["y"], "signature": "serving", "quantized": "exact",
                                             "desired_layout_ops": ["Conv"], "mixed_precision": "float16", "disabled_pass": ["fuse"]})
    yield "compile_odd.json", json.dumps({**compile_job, "input_values": {"n": "x"}, "outputs": [], "quantized": "near", "desired_layout": None,
                                          "desired_layout_ops": ["Conv"], "tuning_records": "x", "disabled_passes": [], "target": "llvm"})
    benchmark = {"kind": "benchmark", "package": BLOB, "repeat": 3, "number": 2, "threads": 1, "force": True, "on": "any=1"}
    yield "benchmark_all.json", json.dumps(benchmark)
    verify = {"kind": "verify", "package": BLOB, "inputs": BLOB, "on": "", "rtol": 1e-3, "atol": 1e-5, "timeout_s": 60}
    yield "verify.json", json.dumps(verify)
    yield "verify_wrong.json", json.dumps({**verify, "inputs": "x", "rtol": -1, "timeout_s": 0.5})
    report = {"kind": "report", "models": ["a", "b"], "targets": ["llvm"], "opt_levels": [0, 3], "layouts": ["NCHW", "NHWC"],
              "input_shapes": {"x": [1, 3]}, "tuning_records": "auto", "inputs": BLOB, "labels": BLOB, "classes": ["cat"], "scores": "logits",
              "samples": 8, "warmup": 1, "repeat": 2, "number": 2, "threads": 1, "time_budget_s": 60}
    yield "report.json", json.dumps(report)
    yield "report_wrong.json", json.dumps({**report, "models": ["", "b"], "targets": [], "opt_levels": [9], "layouts": ["HWCN"], "inputs": "x",
                                           "labels": "y", "time_budget_s": 0})
    yield "report_many.json", json.dumps({**report, "models": ["m"] * 40, "opt_levels": [], "labels": None, "inputs": BLOB})
    yield "report_of_nothing.json", json.dumps({"kind": "report", "opt_levels": 3})


def deployment_seeds():
    whole = {"package": BLOB, "version": "12", "keep_versions": 3, "instances": 2, "max_batch": 8, "max_delay_us": 100, "max_queue": 64,
             "warmup": True, "isolation": "process", "labels": BLOB, "output": "probabilities", "weights": {"1": 900, "12": 100},
             "preprocess": {"resize": 256, "crop": 224, "mean": [1, 2, 3], "std": [1, 2, 3], "scale": 0.5, "layout": "NHWC", "color": "bgr",
                            "encoded": True},
             "placement": {"mode": "labels", "labels": ["zone=a"], "idle_s": 60},
             "sequence": {"start": "s", "end": "e", "ready": "r", "id": "i", "states": {"in": "out"}, "idle_s": 60, "max_sequences": 8}}
    yield "deployment_all.json", json.dumps(whole)
    yield "deployment_decoupled.json", json.dumps({"package": BLOB, "decoupled": True, "max_batch": 1, "placement": {"mode": "demand", "idle_s": 5}})
    yield "deployment_odd.json", json.dumps({**whole, "package": "x", "version": "0", "labels": "x", "decoupled": True,
                                             "weights": {"1": 0, "x": 1}, "preprocess": {"mean": [1, 2], "std": [0], "scale": 1e38},
                                             "placement": {"mode": "all", "labels": ["zone=a"]}, "sequence": {"states": {"in": 1}}})
    yield "weights.json", json.dumps({"weights": {"1": 1, "2": 0}})
    yield "weights_of_nothing.json", json.dumps({"weights": {"1": 0}})
    yield "no_weights.json", json.dumps({"weights": {}})


def worker_seeds():
    offer = {"protocol": 1, "oldest_protocol": 1, "name": "w1", "verbs": ["compile", "measure"], "labels": ["board=rpi4"], "compiler": "0.1.0",
             "facts": {"cores": 4}, "status": {"load": 0.5}, "fresh": True, "wait_s": 10, "hold_s": 60}
    yield "worker_offer.json", json.dumps(offer)
    yield "worker_offer_wrong.json", json.dumps({**offer, "protocol": "x", "name": "?", "verbs": [], "labels": ["=", "a"], "facts": [1], "wait_s": 99})
    yield "worker_offer_later.json", json.dumps({**offer, "protocol": 9, "oldest_protocol": 10, "new": 1})
    yield "worker_offer_long.json", json.dumps({**offer, "labels": [f"l{i}=1" for i in range(100)], "verbs": ["v"] * 20})
    beat = {"progress": {"done": 1}, "events": [{"type": "tuned", "data": {"task": 0}}], "log_offset": 10, "log": "text", "status": None}
    yield "worker_beat.json", json.dumps(beat)
    yield "worker_beat_wrong.json", json.dumps({"progress": 1, "events": [{"type": "state", "data": {}}, {"type": "Tuned"}], "log_offset": -1,
                                                "status": [1]})
    yield "worker_beat_odd.json", json.dumps({"events": 1})
    yield "worker_leave.json", json.dumps({"name": "w1", "ended": True})
    yield "worker_kernels.json", json.dumps({"kernels": ["0" * 64]})


def preprocess_seeds():
    for name, value in {"side": {"resize": 0}, "layout": {"layout": "HW"}, "unknown": {"x": 1}, "numbers": {"mean": [1, 2]},
                        "text": {"std": ["1"]}, "zero": {"std": 0}, "scale": {"scale": "x"}, "long": {"resize": 64},
                        "plain": {"scale": 1e300, "std": [1e-300, 1, 1]}, "list": [1]}.items():
        yield f"{name}.json", json.dumps(value)


def target_seeds():
    yield "all.txt", ("llvm -mcpu haswell -mtriple=x86_64-pc-linux-gnu -num-cores=2 -vector-width=128 -l1d-bytes=65536 "
                      "-l2-bytes=1048576 -keys=cpu --device=cpu -model=m -libs=x")
    for name, text in {
            "alone": "native", "empty": " ", "word": "llvm x", "no_value": "llvm -mcpu", "empty_value": "llvm -mcpu=",
            "twice": "llvm -mcpu=haswell -mcpu=haswell", "unknown_option": "llvm -x=1", "unknown_kind": "gcc",
            "foreign_kind": "cuda", "unknown_cpu": "llvm -mcpu=z80", "cpu_of_other": "llvm -mtriple=aarch64-linux-gnu -mcpu=haswell",
            "cores": "llvm -num-cores=many", "triple": "llvm -mtriple=riscv64-linux-gnu", "feature": "llvm -mattr=+x",
            "no_sign": "llvm -mattr=avx",
            "more_features": "llvm -mcpu=haswell -mattr=+avx512f,+avx512vnni", "neon": "llvm -mtriple=aarch64-linux-gnu -mattr=+neon",
            "no_neon": "llvm -mtriple=aarch64-linux-gnu -mattr=-neon", "width": "llvm -mcpu=haswell -vector-width=200",
            "wide": "llvm -mcpu=haswell -vector-width=512", "other_host": "llvm -mcpu=native -mtriple=aarch64-linux-gnu"}.items():
        yield f"{name}.txt", text
    for name, text in {"broken": "{", "list": '{"kind":"llvm","mattr":["+avx",1]}', "no_kind": '{"mcpu":"haswell"}',
                       "number": '{"kind":1}', "object": '{"kind":"llvm","mcpu":{}}', "tag": '{"kind":"llvm","tag":"x"}'}.items():
        yield f"{name}.json", text


def record_seeds():
    good = json.loads((CORPUS / "records/good.json").read_text(encoding="utf-8").splitlines()[0])
    # What feature_version.h says.
    features = {"version": 4, "values": [0.5] * (3 * (31 + 4 * 5) + 14)}
    changes = {"features": {"features": features}, "other_features": {"features": {"version": 1}},
               "wrong_feature": {"features": {**features, "values": [1e10] * len(features["values"])}},
               "input": {"input": ["a"]}, "threads": {"device": {"cpu": "a", "threads": 0}},
               "time": {"result": [[-1], 0, 1, 1]}, "both": {"result": [[1], 5, 1, 1]},
               "knob": {"config": {**good["config"], "entity": [["a", "ot"]]}}, "key": {"task_key": "x"},
               "steps": {"schedule": ["split s0 i0 3\nvectorize s0 i1"]}, "step": {"schedule": ["no_such s0"]},
               "version": {"version": "2"}, "final": {"config": {**good["config"], "final": 1}},
               "algorithm": {"layer": "a" * 64, "algorithm": "winograd"}, "layer": {"layer": "x", "algorithm": "winograd"}}
    for error in range(1, 9):
        changes[f"error{error}"] = {"result": [[], error, 1, 1]}
    for name, change in changes.items():
        yield f"{name}.json", json.dumps({**good, **change})
    yield "not_json.json", '{"version":'
    yield "damaged.json", "{}\n" + json.dumps(good) + "\n{\"version\"\n"
    yield "all_damaged.json", "{}\n[]\n"


def plan_seeds():
    good = json.loads((CORPUS / "plan/moves.json").read_text(encoding="utf-8"))
    yield "format.json", json.dumps({**good, "format_version": 99}, separators=(",", ":"))
    for name, change in {"in_place": {"in_place": [[0, 0]]}, "in_place_wrong": {"in_place": [[0]]},
                         "sharing": {"sharing": "rows"}, "kind": {"kind": "other"}}.items():
        if "steps" in good:
            changed = json.loads(json.dumps(good))
            changed["steps"][0].update(change)
            yield f"{name}.json", json.dumps(changed, separators=(",", ":"), sort_keys=True)


def plan_set_seeds():
    """A set of plans with one thing wrong, by where it stands."""
    text = (CORPUS / "plan_set/derived.json").read_text(encoding="utf-8")
    generic, other = ("generic",), ("generic", "buffer_holes", 0)
    changes = {"no_plan": ((), {"variants": [], "generic": None}), "name_twice": (("free_dims",), ["N", "N"]),
               "other_names": (("input_shapes",), [["N", "W"]]), "other_shape": (("input_shapes",), [["N", 7]]),
               "two_inputs": (("input_shapes",), [["N", "H"], ["N"]]), "dims": ((*generic, "dims"), [4]),
               "multiples": ((*generic, "multiples"), [2]), "minimums": ((*generic, "minimums"), [0]),
               "multiples_of_two": ((*generic, "multiples"), [1, 2]), "hole_of_nothing": ((*other, "owner"), 99),
               "hole_beside": ((*other, "position"), 9), "factor": ((*generic, "derived", 0, "factor_bits"), 0xFF800000),
               "wide": ((*generic, "derived", 0, "factor_bits"), 0x7F000000), "less": ((*other, "offset"), -5),
               "much": ((*other, "products", 0, "scale"), 1 << 40), "format_99": (("format_version",), 99),
               "empty_step": ((*generic, "empties"), [{"step": 0, "arguments": [0]}]), "fixed": (("free_dims",), [])}
    for name, (path, value) in changes.items():
        plans = json.loads(text)
        place = plans
        for part in path[:-1]:
            place = place[part]
        if path:
            place[path[-1]] = value
        else:
            plans.update(value)
            del plans["generic"]
        yield f"{name}.json", json.dumps(plans, separators=(",", ":"), sort_keys=True)
    plans = json.loads(text)
    plans["variants"] *= 2
    yield "same_variants.json", json.dumps(plans, separators=(",", ":"), sort_keys=True)


SEEDS = {"http_head": head_seeds, "json": json_seeds, "number": number_seeds, "extent": extent_seeds, "v2_request": v2_seeds,
         "http_body": body_seeds, "preprocess": preprocess_seeds, "target": target_seeds, "records": record_seeds, "plan": plan_seeds, "plan_set": plan_set_seeds}
