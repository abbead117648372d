"""Several files as one job: each means what it means for `core run --input`."""

import argparse
import asyncio
import io
import json
import shutil
import subprocess
import zipfile
from urllib.parse import quote

import aiohttp
import numpy as np
import pytest
from core_jobs.offline.command import arguments, run

import core

from .conftest import VECTOR, Client
from .processes import Process

BOUNDARY = "boundary-of-the-test"


class Files(Client):
    """A client that submits files."""

    def upload(self, model, *parts, boundary=BOUNDARY, **headers):
        """Send a form; a part is (name of the file, its bytes), or (field, name of the file, bytes)."""
        body = form(boundary, *(part if len(part) == 3 else ("file", *part) for part in parts))
        kind = f"multipart/form-data; boundary={boundary}"
        fields = {"Content-Type": kind, **{k.replace("_", "-"): v for k, v in headers.items()}}
        return self.call("POST", f"/v2/models/{model}/jobs/files", body, fields)

    def accepted(self, model, *parts, **headers):
        """Return the document of the new job."""
        answer = self.upload(model, *parts, **headers)
        assert answer.status == 202, answer.body
        return answer.json

    def refused(self, model, *parts):
        """Return the text of the error."""
        answer = self.upload(model, *parts)
        assert answer.status == 400, answer.body
        return answer.error

    def lines(self, id):
        """Return the lines of the results of a job, once it has ended."""
        self.ended(id)
        return self.results(id).lines


def uploading(client):
    return Files(int(client.url.rpartition(":")[2]))


def form(boundary, *parts):
    pieces = []
    for field, file, data in parts:
        name = "" if file is None else f'; filename="{file}"'
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"{name}\r\n\r\n'
        pieces += [head.encode(), data, b"\r\n"]
    return b"".join([*pieces, f"--{boundary}--\r\n".encode()])


def npy(array, **how):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), **how)
    return file.getvalue()


def npz(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def measured(data):
    """Return the length of each text."""
    sizes = np.array([len(each) for each in data.ravel()], np.int32).reshape(data.shape)
    return {"size": sizes}


@pytest.fixture(scope="session")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jobs")
    options = {"jobs_folder": str(folder), "jobs_files": 20, "http_max_input_size": 1 << 20}
    with core.Server(**options) as server:
        texts = {"inputs": {"data": ("BYTES", [1])}, "outputs": {"size": ("INT32", [1])}}
        server.bind("texts", measured, **texts, batching=True)
        pair = {"a": ("FP32", [2]), "b": ("FP32", [2])}
        total = {"inputs": pair, "outputs": {"sum": ("FP32", [2])}, "batching": True}
        server.bind("add", lambda a, b: {"sum": a + b}, **total)
        server.bind("double", lambda x: {"y": x * 2}, **VECTOR)
        yield Files(server.serve(http_port=0)["http"])


PAIRS = np.arange(10, dtype=np.float32).reshape(5, 2)
OF_EACH_KIND = [
    ("texts", {"cat.jpg": b"\xff\xd8 a picture", "empty.bin": b"", "b.TXT": b"one\r\ntwo\nthree"}),
    ("texts", {"c.jsonl": b'{"data": "abc"}\n\n{"data": {"b64": "AAEC"}}\nnonsense\n'}),
    ("add", {"a.npz": npz(a=PAIRS, b=PAIRS + 1), "b.npz": npz(a=PAIRS[0], b=PAIRS[1])}),
    ("add", {"r.ndjson": b'{"a": [1, 2], "b": [3, 4]}\n{"a": [1, 2], "b": [3]}'}),
    ("double", {"v.npy": npy(np.arange(4, dtype=np.float32)), "rows.npy": npy(PAIRS.T.copy().T)}),
    ("double", {"ints.npy": npy(np.arange(4)), "old.npy": npy(PAIRS, version=(2, 0))}),
]


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("model", "files"), OF_EACH_KIND)
def test_a_file_means_what_it_means_for_core_run(client, tmp_path, model, files, rows):
    paths = [tmp_path / name for name in files]
    for path, data in zip(paths, files.values(), strict=True):
        path.write_bytes(data)
    parser = argparse.ArgumentParser()
    arguments(parser)
    given = ["--output", str(tmp_path / "out"), "--rows", str(rows), "--max-errors", "-1"]
    run(parser.parse_args([model, "--url", client.url, *given, "--input", *map(str, paths)]))
    expected = {}
    for name in ("results.jsonl", "errors.jsonl"):
        if (file := tmp_path / "out" / name).exists():
            for line in map(json.loads, file.read_text().splitlines()):
                expected[line["source"].removeprefix(f"{tmp_path}/")] = line.get("outputs")

    fields = [("rows", None, str(rows).encode())]
    id = client.accepted(model, *files.items(), *fields)["id"]
    found = {}
    for line in client.lines(id):
        outputs = line["response"].get("outputs")
        assert (line["status"] == 200) == (outputs is not None)
        found[line["source"]] = outputs and {
            each["name"]: np.reshape(each["data"], each["shape"]).tolist() for each in outputs
        }

    assert len(expected) >= 2
    assert found == expected


def test_the_job_tells_how_far_each_file_is_and_has_the_results_of_one(client):
    id = client.accepted(
        "texts", ("a b.txt", b"1\n22\n333"), ("x.jpg", b"4444"), ("bad.jsonl", b"{}\n{")
    )["id"]

    job = client.ended(id)
    assert (job["kind"], job["state"], job["progress"]) == ("files", "done", 1)
    assert job["requests"] == {"total": 6, "succeeded": 4, "failed": 2}
    assert client.get(f"/v2/jobs/{id}/files").json == {
        "id": id,
        "files": [
            {"file": "a b.txt", "requests": {"total": 3, "succeeded": 3, "failed": 0}},
            {"file": "x.jpg", "requests": {"total": 1, "succeeded": 1, "failed": 0}},
            {"file": "bad.jsonl", "requests": {"total": 2, "succeeded": 0, "failed": 2}},
        ],
    }
    of_texts = client.results(id, f"?file={quote('a b.txt')}&first=1").lines
    assert [line["source"] for line in of_texts] == ["a b.txt:2", "a b.txt:3"]
    (of_picture,) = client.results(id, "?file=x.jpg&follow=true").lines
    assert of_picture["response"]["outputs"][0]["data"] == [4]
    unknown = client.results(id, "?file=y.jpg")
    assert (unknown.status, "has no file 'y.jpg'" in unknown.error) == (404, True)


def test_a_field_chooses_the_input_that_a_file_feeds(client):
    of_b, of_a = npy([[1, 2]]), npy([[3, 4]])
    id = client.accepted(
        "add", ("b", "b.npy", of_b), ("file", "a.npy", of_a), ("input_name", None, b"a")
    )["id"]

    missing = [line["response"]["error"] for line in client.lines(id)]
    assert "missing required input(s) ['a']" in missing[0]
    assert "missing required input(s) ['b']" in missing[1]


def test_a_file_that_may_feed_several_inputs_is_refused(client):
    text = client.refused("add", ("c.npy", npy([3, 4])))
    assert "has several inputs: a, b; choose one with the field 'input_name' of the form" in text

    text = client.refused("texts", ("a.txt", b"a"), ("input_name", None, b"nothing"))
    assert "has no input 'nothing'; it has data" in text


def test_a_repeated_upload_with_another_boundary_is_the_same_job(client):
    first = client.accepted("texts", ("a.txt", b"a\nb"), Idempotency_Key="files")
    again = client.upload("texts", ("a.txt", b"a\nb"), boundary="other", Idempotency_Key="files")
    other = client.upload("texts", ("b.txt", b"a\nb"), Idempotency_Key="files")

    assert (again.status, again.json["id"]) == (200, first["id"])
    assert (other.status, first["id"] in other.error) == (400, True)


LINE = b'{"data": "a"}'


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([], "the form has no file"),
        ([("rows", None, b"0"), ("a", b"a")], "the field 'rows' is '0'; expected a whole number"),
        ([("rows", None, b"1")] * 2 + [("a", b"a")], "has the field 'rows' twice"),
        ([("size", None, b"1"), ("a", b"a")], "has a field 'size'; expected files, and the fields"),
        ([("picture", "a.jpg", b"a")], "in the field 'picture'; expected file, or the name of an"),
        (
            [("data", "a.jsonl", LINE)],
            "field 'data' of an input, but a file .jsonl names its inputs",
        ),
        (
            [("a.jsonl", LINE), ("input_name", None, b"data")],
            "each file names its inputs, or is in",
        ),
        (
            [("data", "a.png", b"a"), ("input_name", None, b"data")],
            "each file names its inputs, or is in",
        ),
        ([("a.jpg", b"1"), ("a.jpg", b"2")], "two files of the form are named 'a.jpg'"),
        ([("a" * 256, b"1")], "expected 1 to 255 bytes of printable characters"),
        ([("ä" * 128, b"1")], "expected 1 to 255 bytes of printable characters"),
        ([("", b"1")], "has the name ''"),
        ([(f"{number}.txt", b"a") for number in range(21)], "at most 20 files (--jobs-files)"),
        ([("a.txt", b"")], "the file 'a.txt' has no request"),
        ([("a.npy", b"no array")], "'a.npy' cannot be read as .npy: the magic string"),
        ([("a.npy", npy([b"abc"])[:-1])], "2 bytes of elements; expected 1 of 3 bytes"),
        ([("a.npy", npy(np.array([{}])))], "its elements are Python objects"),
        ([("a.npz", b"PK no zip")], "'a.npz' cannot be read as .npz: File is not a zip file"),
        ([("a.npz", npz(z=np.zeros(2)))], "has an array 'z'; the inputs of model 'texts' are data"),
        ([("a.npz", npz(data=np.zeros(1 << 20)))], "exceeds the maximum allowed input size"),
        ([("a.jpg", bytes(1 << 20))], "exceeds the maximum"),
    ],
)
def test_wrong_forms_are_refused_as_a_whole(client, parts, text):
    assert text in client.refused("texts", *parts)


def test_only_a_form_and_a_known_model_are_taken(client):
    answer = client.call("POST", "/v2/models/texts/jobs/files", b"{}")
    assert (answer.status, "curl -F file=@NAME" in answer.error) == (400, True)
    assert client.upload("absent", ("a", b"a")).status == 404
    assert client.get("/v2/jobs/nothing/files").status == 404


def test_an_npz_with_a_member_that_is_packed_otherwise_is_refused(client):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("data.npy", npy([b"a"]))

    assert "packed in another way" in client.refused("texts", ("a.npz", file.getvalue()))


def test_a_header_that_promises_more_than_the_file_has_takes_no_memory(client):
    data = npy(np.zeros(2, np.float32)).replace(b"(2,), ", b"(2" + b"0" * 9 + b",), ")

    assert "expected 2000000000 of 4 bytes" in client.refused("double", ("a.npy", data))


def test_a_job_of_files_can_be_cancelled(serve):
    client = uploading(serve(jobs_running=1, jobs_concurrency=2))
    rows = npy(np.arange(9, dtype=np.float32).reshape(9, 1))
    id = client.accepted("gate", ("a.npy", rows), ("b.npy", rows))["id"]
    client.until(id, lambda job: job["state"] == "running")

    assert client.call("POST", f"/v2/jobs/{id}/cancel").json["state"] == "cancelled"
    assert client.get(f"/v2/jobs/{id}/files").json["files"][1]["requests"]["succeeded"] == 0
    assert client.call("DELETE", f"/v2/jobs/{id}").status == 204
    assert client.get(f"/v2/jobs/{id}/files").status == 404


def test_files_go_on_after_kill(tmp_path):
    process = Process(tmp_path)
    try:
        client = uploading(process.start())
        first, second = (np.arange(100.0).reshape(100, 1) + at for at in (0, 100))
        id = client.accepted("m", ("a.npy", npy(first)), ("b.npy", npy(second)))["id"]
        client.until(id, lambda job: job["requests"]["succeeded"] >= 40)
        process.kill()

        client = uploading(process.start())
        found = client.lines(id)
        counts = [each["requests"] for each in client.get(f"/v2/jobs/{id}/files").json["files"]]
    finally:
        process.stop()

    sources = [f"{name}.npy[{row}]" for name in "ab" for row in range(100)]
    assert [line["source"] for line in found] == sources
    values = [line["response"]["outputs"][0]["data"] for line in found]
    assert values == [[2.0 * each] for each in range(200)]
    assert counts == [{"total": 100, "succeeded": 100, "failed": 0}] * 2
    assert len(process.notes()) <= 200 + 8  # only what was at the model was executed again


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl_uploads_files(client, tmp_path):
    for name in ("a.jpg", "b.txt"):
        (tmp_path / name).write_bytes(b"12\n345")

    url = f"{client.url}/v2/models/texts/jobs/files"
    given = ["-F", f"file=@{tmp_path / 'a.jpg'}", "-F", f"file=@{tmp_path / 'b.txt'}"]
    done = subprocess.run(
        ["curl", "-sS", "--fail", url, *given, "-F", "rows=2"],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    lines = client.lines(json.loads(done.stdout)["id"])
    assert [(line["source"], line["response"]["outputs"][0]["data"]) for line in lines] == [
        ("a.jpg", [6]),
        ("b.txt:1", [2, 3]),
    ]


def test_aiohttp_uploads_files(client, tmp_path):
    (tmp_path / "größe.npy").write_bytes(npy(PAIRS))

    async def upload():
        with open(tmp_path / "größe.npy", "rb") as file:
            data = aiohttp.FormData(quote_fields=False)  # else the name has %C3 in it
            data.add_field("file", file, filename="größe.npy")
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"{client.url}/v2/models/double/jobs/files", data=data) as answer,
            ):
                return answer.status, await answer.json()

    status, job = asyncio.run(upload())

    assert status == 202, job
    assert [line["source"] for line in client.lines(job["id"])][-1] == "größe.npy[4]"
