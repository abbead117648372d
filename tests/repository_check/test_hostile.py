"""Hostile files and folders end in findings: no traceback, no code that runs, bounded memory and time."""

import io
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from repository_check import check_onnx
from repository_check.broken_models import (
    BROKEN,
    FIL,
    FIL_IN,
    FIL_OUT,
    ONNX,
    PYTHON,
    X,
    Y,
    onnx_model,
    python_model,
    tree,
    write,
)

from frontends.commands.check.finding import Finding
from frontends.commands.check.parsing import parsed
from frontends.commands.check.places.paths import entry_at
from frontends.commands.check.places.tree import tree_of
from tests.becoming import becoming

CORE = Path(sys.executable).with_name("core")
MOST_BYTES = 3 << 30  # of addresses; the libraries of the backends have most of them
_BOUND = becoming(
    f"import resource\nresource.setrlimit(resource.RLIMIT_AS, ({MOST_BYTES}, {MOST_BYTES}))"
)


def run(path, seconds=60):
    """Check a path in a process whose memory is bounded."""
    return subprocess.run(
        [*_BOUND, CORE, "check", path],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )


def entity_bomb():
    entities = "".join(
        f'<!ENTITY e{i} "{f"&e{i - 1};" * 10 if i else "x" * 100}">' for i in range(10)
    )
    return f'<?xml version="1.0"?><!DOCTYPE net [{entities}]><net version="11">&e9;</net>'


def zip_bomb(name="m/constants.pkl", size=1 << 30):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m/constants.pkl", b"")
        for part in ("m/data.pkl", name):
            with archive.open(part, "w") as file:
                for _ in range(size >> 20):
                    file.write(bytes(1 << 20))
    return out.getvalue()


def nested_graphs(depth=200):
    """Return an ONNX file with graphs in the attributes of nodes of graphs."""

    def field(number, content):
        size, out = len(content), bytearray()
        while size > 127:
            out.append(size & 127 | 128)
            size >>= 7
        return bytes([number << 3 | 2, *out, size]) + content

    graph = b""
    for _ in range(depth):
        graph = field(1, field(5, field(6, graph)))
    return field(7, graph) + field(8, b"\x10\x11")


class Evil:
    def __reduce__(self):
        return os.system, ("touch ran",)


OPENVINO = 'backend: "openvino"\n' + X + Y
PYTORCH = 'backend: "pytorch"\n' + X + Y
HUGE = 'input { name: "x" data_type: TYPE_STRING dims: 4000000000 }\n'
HOSTILE = {
    "deep_config": {"config.pbtxt": "dynamic_batching {" * 50_000, "1/": ""},
    "deep_lists": {"config.pbtxt": "input [" * 50_000, "1/": ""},
    "large_config": {"config.pbtxt": "# " + "x" * (2 << 20), "1/": ""},
    "many_fields": {"config.pbtxt": "foo: 1\n" * 20_000, "1/": ""},
    "long_name": {"config.pbtxt": f"{'x' * 100_000}: 1\n", "1/": ""},
    "comment_of_signs": {"config.pbtxt": "foo: 1\n" + "#" * 100_000, "1/": ""},
    "brackets": {"config.pbtxt": f'name: "{"a[" * 200_000}"\n', "1/": ""},
    "escape_codes": {"config.pbtxt": 'name: "\\033[2J\\033]0;evil\\007"\n', "1/": ""},
    "zeros_in_config": {"config.pbtxt": "\0" * 1000, "1/": ""},
    "no_text": {"config.pbtxt": b"\xff\xfe\x00name", "1/": ""},
    "entities": {"config.pbtxt": OPENVINO, "1/model.xml": entity_bomb()},
    "deep_xml": {"config.pbtxt": OPENVINO, "1/model.xml": "<net>" * 100_000},
    "deep_graphs": onnx_model(file=nested_graphs()),
    "deep_json": {"config.pbtxt": FIL + FIL_IN + FIL_OUT, "1/xgboost.json": "[" * 5_000_000},
    "deep_python": python_model(code="(" * 100_000),
    "deep_signs": python_model(code="x = " + "-" * 100_000 + "1\n"),
    "long_sum": python_model(code="x = " + "1+" * 100_000 + "1\n"),
    "long_attributes": python_model(code="x = a" + ".b" * 100_000 + "\n"),
    "many_blocks": python_model(code="".join(f"{' ' * i}if x:\n" for i in range(200))),
    "zip_bomb": {"config.pbtxt": PYTORCH, "1/model.pt": zip_bomb()},
    "pickle": {"config.pbtxt": PYTORCH, "1/model.pt": pickle.dumps(Evil())},
    "gguf_of_counts": {
        "config.pbtxt": 'backend: "llamacpp"\n',
        "1/model.gguf": b"GGUF\x03\0\0\0" + b"\xff" * 16,
    },
    "huge_state": {
        "config.pbtxt": PYTHON
        + 'sequence_batching { state { input_name: "s" output_name: "t" data_type: TYPE_STRING '
        "dims: [ 4000000000, 4000000000 ] } }\n",
        "1/model.py": "",
    },
    "huge_warmup": {
        "config.pbtxt": ONNX
        + X
        + Y
        + 'model_warmup { name: "w" batch_size: 4 count: 1000000000 inputs { key: "x" value { data_type: '
        "TYPE_FP32 dims: [ 1000000000, 1000000000 ] zero_data: true } } }\n",
        "1/model.onnx": check_onnx.model(),
    },
    "huge_dims": {"config.pbtxt": ONNX + HUGE + Y, "1/model.onnx": check_onnx.model()},
    "huge_count": {
        "config.pbtxt": ONNX + X + Y + "instance_group { count: 2000000000 }\n",
        "1/model.onnx": check_onnx.model(),
    },
}


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """Check all hostile models in one process with bounded memory; return what it prints, by model."""
    root = tmp_path_factory.mktemp("hostile")
    for name, files in HOSTILE.items():
        write(root / "models" / name, files)
    write(root / "models" / "right", onnx_model())
    done = run(root / "models")
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == 1, done.stderr
    lines, found = done.stdout.splitlines(), {}
    for line in lines[:-1]:
        if not line.startswith(" "):
            name = line.split()[0]
        found.setdefault(name, []).append(line)
    return root, found


@pytest.mark.parametrize("name", sorted(set(HOSTILE) - {"huge_count"}))
def test_a_hostile_model_ends_in_a_finding(name, checked):
    _, found = checked

    assert len(found[name]) > 1, found[name]
    assert all(len(line) < 100_000 for line in found[name])


def test_no_control_character_reaches_a_terminal(checked):
    _, found = checked

    assert all(line.isprintable() for lines in found.values() for line in lines)


def test_the_models_beside_hostile_ones_are_checked(checked):
    root, found = checked

    (line,) = found["right"]
    assert line.split() == ["right", "ok"]
    assert not (root / "ran").exists()
    assert not Path("ran").exists()


def test_links_out_of_the_repository_are_not_followed(tmp_path, findings):
    write(tmp_path / "outside", {"secret/labels.txt": "a\n", "large/file": "x"})
    write(
        tmp_path / "models" / "linked",
        onnx_model(ONNX + X + Y.replace(" }", ' label_filename: "l" }')),
    )
    model = tmp_path / "models" / "linked"
    (model / "l").symlink_to(tmp_path / "outside" / "secret" / "labels.txt")
    (model / "assets").symlink_to(tmp_path / "outside" / "large")
    (model / "2").symlink_to("nothing")
    (model / "loop").symlink_to(model)

    found = findings(tmp_path / "models")

    by_level = {(each["level"], each["rule"]) for each in found}
    assert by_level == {("error", "labels"), ("warning", "link"), ("note", "link")}
    assert any("assets" in each["text"] and "is not checked" in each["text"] for each in found)


@pytest.mark.parametrize("path", ["config.pbtxt", "labels.txt", "1/model.onnx"])
def test_a_pipe_in_the_place_of_a_file_does_not_block(path, tmp_path):
    files = onnx_model(
        ONNX + X + Y.replace(" }", ' label_filename: "labels.txt" }'), **{"labels.txt": "a\n"}
    )
    write(tmp_path / "piped", files)
    (tmp_path / "piped" / path).unlink()
    os.mkfifo(tmp_path / "piped" / path)

    done = run(tmp_path)

    assert (done.returncode, done.stderr) == (1, "")


def test_an_endless_device_in_the_place_of_a_file_is_not_read(tmp_path):
    for path in ("config.pbtxt", "labels.txt", "1/model.onnx"):
        model = tmp_path / path.replace("/", "_")
        write(
            model,
            onnx_model(
                ONNX + X + Y.replace(" }", ' label_filename: "labels.txt" }'), **{"labels.txt": ""}
            ),
        )
        (model / path).unlink()
        (model / path).symlink_to("/dev/zero")

    done = run(tmp_path)

    assert (done.returncode, done.stderr) == (1, "")


def test_a_folder_that_contains_itself_ends(tmp_path, check):
    write(tmp_path / "loop", onnx_model())
    (tmp_path / "loop" / "1" / "again").symlink_to(tmp_path / "loop")

    assert check(tmp_path)[0] == 0


# Fuzzing -----------------------------------------------------------------------------------------

SOURCES = [each.files["config.pbtxt"] for each in BROKEN.values() if "config.pbtxt" in each.files]
PARTS = [
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    ":",
    ",",
    ";",
    "#",
    '"',
    "'",
    "\\",
    "\n",
    "-",
    "1e9",
    "\0",
    "é",
    " ",
    "x",
]
few = settings(max_examples=100, suppress_health_check=list(HealthCheck))


@st.composite
def texts(draw):
    text = draw(st.sampled_from(SOURCES))
    for _ in range(draw(st.integers(0, 4))):
        at, length = draw(st.integers(0, len(text))), draw(st.integers(0, 8))
        text = text[:at] + draw(st.sampled_from(PARTS)) + text[at + length :]
    return text


@few
@given(texts() | st.text())
def test_any_text_is_parsed_or_has_findings_in_the_text(text):
    found = parsed(text, Path("config.pbtxt"))

    assert found.config is not None or found.findings
    lines = text.split("\n")
    for each in found.findings:
        assert isinstance(each, Finding)
        assert 0 <= each.line <= len(lines)
        if each.edit is not None:
            assert 0 <= each.edit.start <= each.edit.end <= len(text)


@few
@given(texts())
def test_each_field_of_a_tree_is_where_it_says(text):
    tree = tree_of(text)

    for entry, _ in tree.walk():
        assert text[entry.name_start : entry.name_start + len(entry.name)] == entry.name
        assert entry.name_start <= entry.start <= entry.end <= max(entry.end, entry.whole_end)


@few
@given(st.text(st.sampled_from("input[0].dims'x'] abc_"), max_size=40))
def test_any_path_leads_somewhere_or_nowhere(path):
    entry_at(tree_of(SOURCES[0]), path)


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    return tmp_path_factory.mktemp("one")


FILES = {
    "model.onnx": ('backend: "onnxruntime"\n', check_onnx.with_external_data()),
    "xgboost.json": ('backend: "fil"\n', tree().encode()),
    "checkpoint.tl": (
        'backend: "fil"\n',
        bytes.fromhex("04000000080000000100000003030300") + bytes(64),
    ),
    "model.gguf": ('backend: "llamacpp"\n', b"GGUF\x03\0\0\0" + bytes(16) + b"\x01" * 40),
    "model.xml": (
        'backend: "openvino"\n',
        b'<net version="11"><layers><layer id="0" type="Parameter" name="x"/>'
        b'<layer id="1" type="Result" name="y"><input><port id="0" precision="FP32"><dim>1</dim></port>'
        b"</input></layer></layers></net>",
    ),
    "model.py": (
        'backend: "python"\n',
        b"class TritonPythonModel:\n    def execute(self, requests):\n        pass\n",
    ),
    "model.plan": ('backend: "tensorrt"\n', b"ftrt" + bytes(30)),
}


@pytest.mark.parametrize("name", sorted(FILES))
def test_any_bytes_in_a_file_end_in_known_errors(name, one):
    """A check that fails in an unknown way is a warning `cannot check`: there must be none."""
    from core import plugins
    from core.options import Options
    from frontends.commands.check.model_check import check_model
    from frontends.commands.check.settings import Settings

    config, original = FILES[name]
    folder = write(
        one / name.replace(".", "_"),
        {"config.pbtxt": config + "max_batch_size: 4\n" + X + Y, "1/": ""},
    )
    wanted = Settings(Options.defaults(), (), plugins.formats())

    @few
    @given(st.data())
    def fuzz(data):
        content = bytearray(original)
        for _ in range(data.draw(st.integers(0, 6))):
            at = data.draw(st.integers(0, max(0, len(content) - 1)))
            content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        (folder / "1" / name).write_bytes(bytes(content))

        found = check_model(folder, one, wanted).report.findings

        assert not [each.text for each in found if "cannot check the file" in each.text]

    fuzz()
