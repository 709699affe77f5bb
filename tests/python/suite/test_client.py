"""Both clients with a server."""

import asyncio
import io
import tarfile

import numpy as np
import pytest

import tensormill as tm
from conftest import DIGITS, ROOT

SHAPES = {"image": [2, 1, 28, 28]}
PICTURES = np.random.default_rng(5).random((2, 1, 28, 28), dtype=np.float32)
PREPROCESS = {"resize": 28, "crop": 28, "scale": 1 / 255, "mean": [0], "std": [1], "layout": "NCHW", "color": "gray"}


@pytest.fixture(scope="module")
def client(server):
    with tm.Client(server) as made:
        yield made


@pytest.fixture(scope="module")
def built(client):
    """The result of a compile job, and its events."""
    client.upload_model("digits", DIGITS, chunk=100_000)
    seen = []
    job = client.compile("digits", input_shapes=SHAPES, opt_level=1)
    return job.result(seen.append), seen, job


@pytest.fixture(scope="module")
def expected(client, built):
    """What the package gives in this process."""
    return client.load_package(built[0]["package"]).run(PICTURES)[0]


def test_the_server(client):
    assert client.ready()
    assert "onnx" in client.info()["model_formats"]
    assert client.targets()
    assert client.storage()["blobs"]["count"] >= 0
    assert client.collect_garbage(dry_run=True)["dry_run"] is True


def test_jobs_and_their_events(client, built):
    result, seen, job = built
    assert [event.kind for event in seen][-1] == "end" and {"state", "progress"} <= {event.kind for event in seen}
    assert job.state == "succeeded" and job.id in [one.id for one in client.jobs(kind="compile", model="digits")]
    assert client.job(job.id).refresh().result() == result
    again = client.compile("digits", input_shapes=SHAPES, opt_level=1)
    assert again.cached and again.result()["package"] == result["package"]
    assert isinstance(job.log(), str)


def test_reports(client, built, work):
    np.savez(work / "set.npz", image=np.zeros((3, 1, 28, 28), np.float32))
    job = client.report(["digits"], client.upload(work / "set.npz"), input_shapes={"image": [1, 1, 28, 28]}, opt_levels=[0], repeat=2)
    assert job.result() == {"configurations": 1, "ok": 1}
    (row,) = job.report()["configurations"]
    assert (row["state"], row["run"]["samples"]) == ("ok", 3)
    assert job.report_page().startswith("<!doctype html>")


def npz_of_pictures():
    file = io.BytesIO()
    np.savez(file, image=PICTURES)
    return file.getvalue()


def test_verifications(client, built):
    inputs = client.upload(npz_of_pictures())
    (output,) = client.verify(built[0]["package"], inputs).result()["outputs"]
    assert (output["name"], output["elements"]) == ("logits", 20)
    with pytest.raises(tm.ServerError) as caught:
        client.verify(built[0]["package"], inputs, rtol=-1)
    assert caught.value.pointer == "/rtol"


def test_bundles(client, built):
    with tarfile.open(fileobj=io.BytesIO(client.package_bundle(built[0]["package"], name="net"))) as archive:
        assert archive.getnames() == ["net.a", "net.h", "tensormill.h"]
        assert b"tm_bundle_net" in archive.extractfile("net.h").read()


def test_models(client, built):
    assert client.model("digits")["ops"]["Conv"] == 4
    assert "digits" in [name for model in client.models() for name in model["names"]]
    assert client.packages(model="digits")[0]["id"] == built[0]["package"]
    with pytest.raises(tm.ServerError) as caught:
        client.upload_model("broken", ROOT / "LICENSE")
    assert caught.value.status == 422 and caught.value.code == "invalid_model"
    with pytest.raises(tm.ServerError) as caught:
        client.upload_model("digits", ROOT / "LICENSE")
    assert (caught.value.status, caught.value.code) == (409, "name_taken")
    with pytest.raises(tm.ServerError) as caught:
        client.model("nope")
    assert (caught.value.status, caught.value.code) == (404, "not_found") and caught.value.request_id


@pytest.mark.parametrize("protocol", ["v2", "v2-json", "grpc", "npz"])
def test_inference(client, built, expected, protocol):
    labels = (ROOT / "tests/models/digits.labels.txt").read_text().split()
    client.deploy("served", built[0], labels=labels, preprocess=PREPROCESS)
    got = client.infer("served", {"image": PICTURES}, protocol=protocol, outputs=["logits"])
    assert got["logits"].tobytes() == expected.tobytes()
    with pytest.raises(tm.ServerError) as caught:
        client.infer("served", {"image": PICTURES[:, :, :3]}, protocol=protocol)
    assert caught.value.code == "invalid_tensor" and "[2,1,3,28]" in caught.value.detail
    assert caught.value.status == (422 if protocol == "npz" else 400) and caught.value.request_id
    assert "served" in [one["name"] for one in client.deployments()]


def test_runs_of_a_package(client, built, expected):
    assert client.run(built[0]["package"], {"image": PICTURES}, compress=True)[0].tobytes() == expected.tobytes()
    assert client.run(built[0]["package"], fill_mode="zeros").numpy().shape == (2, 10)


def test_classify(client):
    client.upload_model("one", DIGITS)
    built = client.compile("one", input_shapes={"image": [1, 1, 28, 28]}, opt_level=1).result()
    labels = [str(one) for one in range(10)]
    client.deploy("reads", built, labels=labels, preprocess=PREPROCESS, output="logits")
    top = client.classify("reads", ROOT / "tests/models/pictures/7.png", top=3)
    assert [row["label"] for row in top][0] == "7" and len(top) == 3
    client.deploy("reads", built, labels=labels, preprocess=PREPROCESS, version="2", keep_versions=2, weights={"1": 1, "2": 1})
    assert client.set_weights("reads", {"1": 1, "2": 9})["default_version"] == "2"
    assert client.rollback("reads")["default_version"] == "1"
    client.undeploy("reads")
    with pytest.raises(tm.ServerError) as caught:
        client.classify("reads", ROOT / "tests/models/pictures/7.png")
    assert caught.value.status == 404


def test_mistakes_in_a_request_have_pointers(client, built):
    with pytest.raises(tm.ServerError) as caught:
        client.compile("digits", opt_level=9)
    assert caught.value.pointer == "/opt_level"


def test_asyncio(server, built, expected):
    async def run():
        async with tm.AsyncClient(server) as client:
            models = await client.upload_models({"first": DIGITS, "second": DIGITS}, parallel=2)
            assert set(models) == {"first", "second"}
            job = await client.compile("first", input_shapes=SHAPES, opt_level=1)
            assert (await job)["package"] == built[0]["package"]
            kinds = [event.kind async for event in job.events()]
            assert kinds[-1] == "end"
            await client.deploy("served", built[0])
            answers = await asyncio.gather(*(client.infer("served", {"image": PICTURES}) for _ in range(6)))
            answers += await asyncio.gather(*(client.infer("served", {"image": PICTURES}, protocol="grpc") for _ in range(6)))
            assert all(answer[0].tobytes() == expected.tobytes() for answer in answers)
            verified = await client.verify(built[0]["package"], await client.upload(npz_of_pictures()))
            assert (await verified)["package"] == built[0]["package"]
            package = await client.load_package(built[0]["package"])
            assert package.run(PICTURES)[0].tobytes() == expected.tobytes()
            with pytest.raises(tm.ServerError) as caught:
                await client.model("nope")
            assert caught.value.code == "not_found"

    asyncio.run(run())
