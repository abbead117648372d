"""Text of a picture: an ensemble and a Python model that calls others read what rapidocr reads."""

import importlib.util
import runpy
from pathlib import Path

import numpy as np
import pytest

import core

FOLDER = Path(__file__).parents[1]
cv2 = pytest.importorskip("backend_image.opencv", reason="backend-image is not installed").cv2
pytest.importorskip("onnxruntime")
READ = runpy.run_path(str(FOLDER / "read.py")) if importlib.util.find_spec("tritonclient") else None
MODELS = ("read_page", "read_page_bls")


@pytest.fixture(scope="module")
def server():
    if importlib.util.find_spec("rapidocr") is None:
        pytest.skip("the networks are in a package: pip install --no-deps rapidocr")
    runpy.run_path(str(FOLDER / "make_models.py"), run_name="__main__")
    with core.Server(model_repository=str(FOLDER / "models")) as running:
        yield running


@pytest.fixture(scope="module")
def read():
    if READ is None:
        pytest.skip("the client needs tritonclient[http]")
    return READ


@pytest.fixture(scope="module")
def answers(server, read):
    """The answers of both models for the page that the client draws."""
    return {model: server.infer(model, {"image": [read["drawn"]()]}) for model in MODELS}


def texts(answer):
    return [text.decode() for text in answer["texts"]]


@pytest.mark.parametrize("model", MODELS)
def test_the_page_says_what_was_drawn(read, answers, model):
    answer = answers[model]

    assert texts(answer) == [text for *_, text in read["PAGE"]]
    assert answer["scores"].min() > 0.9
    for box, (x, y, size, text) in zip(answer["boxes"], read["PAGE"], strict=True):
        (left, top), (right, bottom) = box.min(axis=0), box.max(axis=0)
        assert left <= x < right and top <= y + size / 2 < bottom, text


def test_rapidocr_reads_the_same(read, answers):
    """Its detector gets the page in another size, so that the boxes differ a little."""
    rapidocr = pytest.importorskip("rapidocr", reason="rapidocr lacks a package that it needs")
    picture = cv2.imdecode(np.frombuffer(read["drawn"](), np.uint8), cv2.IMREAD_COLOR)

    found = rapidocr.RapidOCR(params={"Global.log_level": "error"})(picture)

    for model in MODELS:
        assert texts(answers[model]) == list(found.txts)
        np.testing.assert_allclose(answers[model]["boxes"], found.boxes, rtol=0, atol=8)


@pytest.mark.parametrize("model", MODELS)
def test_an_empty_page_has_no_lines(server, model):
    file = cv2.imencode(".png", np.full((200, 300, 3), 255, np.uint8))[1].tobytes()

    answer = server.infer(model, {"image": [file]})

    assert texts(answer) == []
    assert answer["scores"].shape == (0,)
    assert answer["boxes"].shape == (0, 4, 2)


@pytest.mark.parametrize("model", MODELS)
def test_a_file_that_is_no_picture_is_refused(server, model):
    with pytest.raises(core.CoreError, match="no JPEG, PNG, WebP or BMP file") as caught:
        server.infer(model, {"image": [b"no picture"]})

    assert caught.value.kind is core.Kind.INVALID


def test_the_client_prints_the_lines_of_a_file(server, read, monkeypatch, capsys, tmp_path):
    page = cv2.imdecode(np.frombuffer(read["drawn"](), np.uint8), cv2.IMREAD_COLOR)
    cv2.imwrite(file := str(tmp_path / "title.jpg"), page[:120, :500])
    address = f"localhost:{server.serve(http_port=0)['http']}"
    asked = ["read.py", file, "--server", address, "--model", "read_page_bls"]
    monkeypatch.setattr("sys.argv", asked)

    read["main"]()

    assert [line[5:] for line in capsys.readouterr().out.splitlines()] == ["Opening hours"]


def test_lines_of_like_length_are_recognised_together(stubbed):
    grouped = stubbed("read_page_bls")["grouped"]

    groups = grouped(np.array([900, 100, 320, 400, 5000]), most_pixels=1000)

    assert groups == [[1, 2], [3], [0], [4]]  # 100 counts as 320; a line alone may be longer
    assert grouped(np.empty(0, np.int32), most_pixels=1000) == []


def test_rows_are_read_from_left_to_right(stubbed):
    in_reading_order = stubbed("cut_lines")["in_reading_order"]

    def box(x, y):
        return [[x, y], [x + 100, y], [x + 100, y + 20], [x, y + 20]]

    boxes = np.array([box(200, 104), box(0, 40), box(0, 100), box(200, 28)], np.float32)

    assert in_reading_order(boxes)[:, 0].tolist() == [[200, 28], [0, 40], [0, 100], [200, 104]]
    assert in_reading_order(boxes[:0]).shape == (0, 4, 2)


def test_a_line_of_a_column_is_turned(stubbed):
    upright = stubbed("cut_lines")["upright"]
    page = np.zeros((200, 40, 3), np.uint8)
    page[150:] = 255  # the beginning of a line from the bottom to the top, or its end

    line = upright(page, np.array([[0, 0], [39, 0], [39, 199], [0, 199]], np.float32))

    assert line.shape[0] == 48 and 240 <= line.shape[1] <= 250
    assert line[:, :50].mean() > 250 or line[:, -50:].mean() > 250


@pytest.fixture
def stubbed(monkeypatch):
    """Return the names of a Python model's file. The module of requests is not called."""
    import sys
    import types

    name = "triton_python_backend_utils"
    if name not in sys.modules:
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    return lambda model: runpy.run_path(str(FOLDER / "models" / model / "1" / "model.py"))
