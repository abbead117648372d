"""Archives of TorchServe, without TorchServe and torch."""

import json
import tarfile
import zipfile

import import_sources as archives
import numpy as np
import pytest

from core import CoreError


def element(text):
    return np.array([text.encode()], object)


def test_a_handler_runs_without_torchserve(tmp_path, imported, served):
    report = imported(archives.words(tmp_path / "words.mar"))

    assert "words: TorchServe archive, handler handler.py" in report
    assert "inputs   data STRING[1]\n  outputs  output STRING[1]" in report
    assert f"next: core serve {tmp_path / 'models'}" in report
    server = served("words")
    answer = server.ask({"data": element("2")}, name="words")["output"]
    assert json.loads(answer[0]) == {"word": "two", "unit": None}


def test_the_text_of_a_prediction_exception_reaches_the_client(tmp_path, imported, served):
    imported(archives.words(tmp_path / "words.mar"))

    error = served("words").answer({"data": element("-1")}, name="words")

    assert isinstance(error, CoreError)
    assert "a number below 0 : 400" in error.message


def test_settings_become_the_configuration(tmp_path, imported, served):
    settings = (
        "minWorkers: 2\nbatchSize: 8\nmaxBatchDelay: 20\nhandler: {factor: 2}\ndeviceType: cpu\n"
    )
    files = {
        "handler.py": archives.HANDLER,
        "words.txt": "zero one two three four",
        "model-config.yaml": settings,
    }
    source = archives.mar(tmp_path / "words.mar", files, {"configFile": "model-config.yaml"})

    report = imported(source)

    assert "only the handler sees deviceType" in report
    server = served("words")
    config = server.config("words")
    assert config.max_batch_size == 8
    assert config.dynamic_batching.max_queue_delay_microseconds == 20000
    assert config.instance_group[0].count == 2
    rows = np.array([[b"1"], [b"2"]], object)
    found = server.ask({"data": rows}, name="words")["output"]
    assert [json.loads(each)["word"] for each in found.ravel()] == ["two", "four"]


def test_a_function_is_a_handler(tmp_path, imported, served):
    code = "def upper(rows, context):\n    return [row['data'].decode().upper() for row in rows or []]\n"
    source = archives.mar(tmp_path / "up.mar", {"own.py": code}, {"handler": "own.py:upper"})

    imported(source)

    answer = served("up").ask({"data": element("abc")}, name="up")["output"]
    assert answer.tolist() == [b"ABC"]


def test_a_stream_is_decoupled(tmp_path, imported, served):
    code = """
from ts.handler_utils.utils import send_intermediate_predict_response


def handle(rows, context):
    if rows is None:
        return None
    for i in range(3):
        send_intermediate_predict_response([f"{i} "], context.request_ids, "more", 200, context)
    return ["end"]
"""
    imported(archives.mar(tmp_path / "parts.mar", {"handler.py": code}))

    parts = served("parts").stream({"data": element("")}, name="parts")

    assert [part["output"][0] for part in parts if part] == [b"0 ", b"1 ", b"2 ", b"end"]


def test_requirements_are_named_and_become_an_environment_if_asked(tmp_path, imported, repository):
    files = {
        "handler.py": archives.HANDLER,
        "requirements.txt": "# of the model\nno-such-thing==1.5\n",
    }
    model = {"requirementsFile": "requirements.txt"}
    source = archives.mar(tmp_path / "needy.mar", files, model)

    assert "no-such-thing==1.5 (missing here: pip install" in imported(source)
    assert "REQUIREMENTS" not in (repository / "needy/config.pbtxt").read_text()
    assert "the server installs these" in imported(source, "--force", "--environment")
    text = (repository / "needy/config.pbtxt").read_text()
    assert 'key: "REQUIREMENTS" value { string_value: "requirements.txt" }' in text
    lines = (repository / "needy/1/requirements.txt").read_text().splitlines()
    assert lines == ["-r source/requirements.txt", "torch", "numpy"]


def test_what_the_stand_in_misses_needs_torchserve(tmp_path, imported, repository):
    code = "from ts.metrics.dimension import Dimension\n" + archives.HANDLER
    imported(archives.mar(tmp_path / "metrics.mar", {"handler.py": code}))

    text = (repository / "metrics/config.pbtxt").read_text()
    assert 'key: "USE_PACKAGE" value { string_value: "torchserve" }' in text
    assert not (repository / "metrics/1/compat").exists()


def test_importing_runs_nothing_of_the_archive(tmp_path, imported):
    code = f"open({str(tmp_path / 'ran')!r}, 'w')\n" + archives.HANDLER
    imported(archives.mar(tmp_path / "quiet.mar", {"handler.py": code}))

    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ({"handler": "absent.py"}, "the archive has no handler 'absent.py'"),
        ({"handler": "vllm_handler"}, "cannot be taken: it starts vLLM itself"),
        ({"handler": ""}, "names no handler"),
        ({"serializedFile": "net.pt"}, "names the serializedFile 'net.pt', which is not in it"),
        ({"serializedFile": "../net.pt"}, "which is not in it"),
    ],
)
def test_a_handler_or_file_that_is_missing(tmp_path, refused, model, text):
    source = archives.mar(tmp_path / "bad.mar", {"handler.py": archives.HANDLER}, model)
    assert text in refused(source)


def test_archives_that_cannot_be_taken(tmp_path, refused):
    java = archives.mar(tmp_path / "java.mar", {"handler.py": ""}, runtime="LSP")
    assert "the runtime 'lsp'" in refused(java)
    bare = archives.mar(tmp_path / "bare.mar", {"handler.py": ""}, manifest=False)
    assert "has no MAR-INF/MANIFEST.json" in refused(bare)
    broken = archives.mar(tmp_path / "broken.mar", {"handler.py": "def f(:"})
    assert "is no Python 3" in refused(broken)
    files = {"handler.py": "", "c.yaml": "parallelType: tp\n"}
    parallel = archives.mar(tmp_path / "parallel.mar", files, {"configFile": "c.yaml"})
    assert "torchrun" in refused(parallel)
    workflow = tmp_path / "flow.war"
    workflow.write_bytes(b"")
    assert "several models" in refused(workflow)


@pytest.mark.parametrize("name", ["../out.py", "/out.py", "a/../../out.py", "c:out.py"])
def test_no_file_is_written_outside(tmp_path, refused, name):
    source = archives.mar(tmp_path / "slip.mar", {name: "bad", "handler.py": ""})
    assert "lies outside of it" in refused(source)
    assert not list(tmp_path.rglob("out.py"))


def test_a_bomb_is_refused(tmp_path, refused):
    source = tmp_path / "bomb.mar"
    with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(80 << 20))
    assert "it unpacks to more than" in refused(source)


def test_links_are_refused(tmp_path, refused):
    source = tmp_path / "link.tar.gz"
    with tarfile.open(source, "w:gz") as archive:
        entry = tarfile.TarInfo("m/MAR-INF/MANIFEST.json")
        archive.addfile(entry)
        link = tarfile.TarInfo("m/handler.py")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert "is a link or a device" in refused(source)


def test_a_damaged_archive(tmp_path, refused):
    source = archives.words(tmp_path / "cut.mar")
    source.write_bytes(source.read_bytes()[:-30])
    assert "neither a zip nor a tar archive" in refused(source)
