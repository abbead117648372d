"""`core run`: files in, files out, in this process and against a server; interruptions."""

import json
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from .conftest import Client, request
from .processes import environment, write_model


@pytest.fixture
def command(capsys):
    """Run `core run …`: command("m", "--input", …) → status, output, error."""
    from core.plugins.commands import run_command

    def run(*arguments):
        capsys.readouterr()
        status = run_command("run", [str(each) for each in arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(status=status, out=out, err=err)

    return run


@pytest.fixture(scope="session")
def url(tmp_path_factory):
    """The address of a server with models for these tests."""
    import core

    def rows(x):
        return {"y": x * 2}

    def either(x):
        if (x < 0).any():
            raise ValueError("below zero")
        return {"y": x}

    def size(image):
        return {"size": np.array([[len(each[0])] for each in image], np.int64)}

    with core.Server() as server:
        server.bind(
            "rows",
            rows,
            inputs={"x": ("FP32", [2])},
            outputs={"y": ("FP32", [2])},
            batching=True,
            max_batch_size=8,
        )
        server.bind("either", either, inputs={"x": ("FP32", [-1])}, outputs={"y": ("FP32", [-1])})
        server.bind(
            "size",
            size,
            inputs={"image": ("BYTES", [1])},
            outputs={"size": ("INT64", [1])},
            batching=True,
        )
        server.bind(
            "same",
            lambda data: {"data": data},
            inputs={"data": ("BYTES", [1])},
            outputs={"data": ("BYTES", [1])},
        )
        yield f"127.0.0.1:{server.serve(http_port=0)['http']}"


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_json_lines(command, url, tmp_path):
    source = tmp_path / "in.jsonl"
    own = '{"x": [1, 2]}\n\n{"x": [[3, 4], [5, 6]]}\n'
    source.write_text(own + request(7, 8).decode().replace("[2]", "[1, 2]"))
    out = tmp_path / "out"

    done = command("rows", "--input", source, "--output", out, "--url", url)
    assert done.status == 0
    found = lines(out / "results.jsonl")
    assert [each["outputs"]["y"] for each in found] == [[[2, 4]], [[6, 8], [10, 12]], [[14, 16]]]
    assert [each["source"] for each in found] == [f"{source}:{n}" for n in (1, 3, 4)]
    assert [each["index"] for each in found] == [0, 1, 2]
    assert done.err.startswith("3 requests in ")
    assert not (out / "errors.jsonl").exists()


def test_arrays_and_rows(command, url, tmp_path):
    array = np.arange(20, dtype=np.float64).reshape(10, 2)
    np.save(tmp_path / "x.npy", array)
    np.savez(tmp_path / "x.npz", x=array)

    done = command(
        *("rows", "--input", tmp_path / "x.npy", tmp_path / "x.npz", "--rows", 4),
        *("--output", tmp_path / "out", "--url", url),
    )
    assert done.status == 0, done.err
    found = lines(tmp_path / "out" / "results.jsonl")
    assert [each["source"].rpartition("[")[2] for each in found] == ["0:4]", "4:8]", "8:10]"] * 2
    assert (
        np.concatenate([each["outputs"]["y"] for each in found[:3]]).tolist()
        == (2 * array).tolist()
    )


def test_files_of_a_folder_and_a_pattern(command, url, tmp_path):
    (tmp_path / "images" / "more").mkdir(parents=True)
    for name, size in (("b.png", 2), ("a.jpg", 3), ("more/c.jpg", 4)):
        (tmp_path / "images" / name).write_bytes(bytes(size))
    images = tmp_path / "images"

    command("size", "--input", images, "--output", tmp_path / "one", "--url", url)
    command("size", "--input", f"{images}/**/*.jpg", "--output", tmp_path / "two", "--url", url)
    sizes = [
        [each["outputs"]["size"][0][0] for each in lines(tmp_path / name / "results.jsonl")]
        for name in ("one", "two")
    ]
    assert sizes == [[3, 2, 4], [3, 4]]


@pytest.mark.parametrize("given", ["data", "data/", "data/**/*", "link"])
def test_an_output_folder_within_the_input_is_no_input(command, url, tmp_path, monkeypatch, given):
    """Neither the first run reads what it writes, nor the next one, which goes on."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "output").mkdir(parents=True)
    (tmp_path / "data" / "a.jsonl").write_text('{"x": [1]}\n{"x": [2]}\n')
    (tmp_path / "data" / "output" / "b.jsonl").write_text('{"x": [3]}\n')
    (tmp_path / "link").symlink_to("data")
    pattern = "*" in given
    given = f"{tmp_path}/data/**/*.jsonl" if pattern else given

    for time_of_run in ("first", "next"):
        done = command("either", "--input", given, "--output", "data/out", "--url", url)
        assert done.status == 0, done.err
        assert ("3 requests are done already" in done.err) == (time_of_run == "next")
        assert ("'data/out', is within --input" in done.err) != pattern
    found = lines(tmp_path / "data" / "out" / "results.jsonl")
    assert [each["outputs"]["y"] for each in found] == [[1], [2], [3]]
    nothing = command("either", "--input", "data/out", "--output", "data/out", "--url", url)
    assert "the folder 'data/out' has no files beside those of --output 'data/out'" in nothing.err


@pytest.mark.parametrize("given,form", [("images", "npz"), ("images/*.txt", "jsonl")])
def test_inputs_below_the_output_folder_are_read(command, url, tmp_path, monkeypatch, given, form):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "00000000.txt").write_text("one\n")

    for time_of_run in ("first", "next"):
        done = command("same", "--input", given, "--output", ".", "--url", url, "--format", form)
        assert done.status == 0, done.err
        assert ("1 requests are done already" in done.err) == (time_of_run == "next")


def test_texts_and_the_forms_of_outputs(command, url, tmp_path):
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    given = ("same", "--input", tmp_path / "in.txt", "--url", url)

    assert command(*given, "--output", tmp_path / "npz", "--format", "npz").status == 0
    assert command(*given, "--output", tmp_path / "raw", "--format", "raw").status == 0
    with np.load(tmp_path / "npz" / "00000001.npz") as file:
        assert file["data"].tolist() == [b"two"]
    assert (tmp_path / "raw" / "00000001-data.bin").read_bytes() == b"two"
    assert lines(tmp_path / "raw" / "results.jsonl")[1]["files"] == ["00000001-data.bin"]


def test_errors_have_a_file_of_their_own(command, url, tmp_path):
    source = tmp_path / "in.jsonl"
    rows = ['{"x": [1]}', '{"x": [-1]}', "{", '{"z": [1]}', '{"x": ["a"]}', '{"x": [2]}']
    source.write_text("\n".join(rows))
    out = tmp_path / "out"

    done = command("either", "--input", source, "--output", out, "--url", url)
    assert done.status == 1
    assert "4 failed: see" in done.err
    found = lines(out / "errors.jsonl")
    assert [each["index"] for each in found] == [1, 2, 3, 4]
    assert "below zero" in found[0]["error"]
    assert "has no input 'z'; it has x" in found[2]["error"]
    assert [each["index"] for each in lines(out / "results.jsonl")] == [0, 5]


def test_a_run_with_many_errors_stops(command, url, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text('{"x": [-1]}\n' * 50)
    given = ("either", "--input", source, "--output", tmp_path / "out", "--url", url)

    done = command(*given, "--max-errors", 3)
    assert done.status == 1
    assert "stopped: more than 3 requests have failed, at last with: " in done.err
    assert "the same command goes on after the 4 requests that are done" in done.err
    done = command(*given, "--max-errors", -1)
    assert "4 requests are done already" in done.err
    assert len(lines(tmp_path / "out" / "errors.jsonl")) == 50


def test_wrong_command_lines(command, url, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"x": [1]}')
    out = ("--output", tmp_path / "out")

    def error(*arguments):
        done = command(*arguments)
        assert done.status == 1
        return done.err

    given = ("either", "--input", tmp_path / "in.jsonl", *out)
    assert "where is model 'either'?" in error(*given)
    assert "there is no file or folder 'nothing'" in error("m", "--input", "nothing", *out)
    assert "--rows=0" in error(*given, "--rows", 0)
    assert "each file of --input names its inputs" in error(*given, "--input-name", "x")
    (tmp_path / "empty").mkdir()
    empty = ("either", "--input", tmp_path / "e?pty", *out, "--input-name", "x")
    assert "where is model 'either'?" in error(*empty)
    assert "does not answer" in error(*given, "--url", "127.0.0.1:1")
    assert command(*given, "--url", url).status == 0
    other = error("rows", "--input", tmp_path / "in.jsonl", *out, "--url", url)
    assert "has the results of another run: 'model' was 'either', and is 'rows' now" in other


@pytest.fixture
def repository(tmp_path):
    """Write a repository in which model m takes 10 ms; return the environment for `core run`."""
    write_model(tmp_path)
    return environment(tmp_path, takes_s=0.01)


def test_an_interrupted_run_has_the_same_output(repository, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text("".join(f'{{"x": [{n}]}}\n' for n in range(300)))

    def begin(out):
        command = [
            *(sys.executable, "-m", "core", "run", "m", "--input", source, "--output", out),
            *("--model-repository", tmp_path / "models", "--concurrency", "4"),
        ]
        return subprocess.Popen(command, env=repository, stderr=subprocess.PIPE, text=True)

    def wait_for(out, count):
        end = time.monotonic() + 60
        while not (out / "results.jsonl").exists() or len(lines(out / "results.jsonl")) < count:
            assert time.monotonic() < end
            time.sleep(0.01)

    whole = begin(tmp_path / "whole")
    assert whole.wait(60) == 0

    out = tmp_path / "parts"
    first = begin(out)
    wait_for(out, 20)
    first.send_signal(signal.SIGINT)
    text = first.communicate(timeout=30)[1]
    assert first.returncode == 130
    assert "stopped; the same command goes on after the" in text

    second = begin(out)
    wait_for(out, len(lines(out / "results.jsonl")) + 20)
    second.kill()
    second.communicate()
    done = len((out / "results.jsonl").read_bytes().splitlines())
    assert 40 <= done < 300

    third = begin(out)
    text = third.communicate(timeout=60)[1]
    assert third.returncode == 0
    assert "requests are done already" in text
    assert (out / "results.jsonl").read_bytes() == (
        tmp_path / "whole" / "results.jsonl"
    ).read_bytes()


def test_a_capture_is_an_input(command, url, tmp_path):
    pytest.importorskip("core_capture")
    import core

    with core.Server(capture=str(tmp_path / "capture")) as server:
        server.bind(
            "either",
            lambda x: {"y": x},
            inputs={"x": ("FP32", [-1])},
            outputs={"y": ("FP32", [-1])},
        )
        client = Client(server.serve(http_port=0)["http"])
        for n in range(3):
            assert client.call("POST", "/v2/models/either/infer", request(n)).status == 200
    done = command(
        *("either", "--input", tmp_path / "capture", "--output", tmp_path / "out", "--url", url)
    )
    assert done.status == 0, done.err
    values = [each["outputs"]["y"] for each in lines(tmp_path / "out" / "results.jsonl")]
    assert sorted(values) == [[0], [1], [2]]
