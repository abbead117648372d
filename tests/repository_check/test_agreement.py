"""For any configuration, the check has an error exactly if a load refuses the model."""

import logging

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from repository_check import check_onnx
from repository_check.broken_models import tree, write

from core import plugins
from core.options import Options
from frontends.commands.check.model_check import check_model
from frontends.commands.check.settings import Settings
from frontends.commands.offline import offline_model

FLOAT, INT64 = check_onnx.FLOAT, check_onnx.INT64
FILES = {
    "batches": check_onnx.model(),
    "fixed": check_onnx.model((("x", FLOAT, [2, 4]),), (("y", FLOAT, [2, 4]),)),
    "scalar": check_onnx.model((("x", FLOAT, []),), (("y", FLOAT, []),)),
    "any": check_onnx.model((("x", FLOAT, ["a", "b"]),), (("y", FLOAT, ["a", "b"]),)),
    "two": check_onnx.model(
        (("x", FLOAT, ["n", 4]), ("z", INT64, ["n"])),
        (("y", FLOAT, ["n", 4]), ("w", INT64, ["n"])),
        [("Relu", ["x"], ["y"], ""), ("Identity", ["z"], ["w"], "")],
    ),
}
types = st.sampled_from(["TYPE_FP32", "TYPE_FP32", "TYPE_INT64", "TYPE_STRING", "TYPE_BOOL", ""])
dims = st.lists(st.sampled_from([4, 4, 2, 1, -1]), max_size=2)


@st.composite
def tensor(draw, kind, names):
    text = f'{kind} {{ name: "{draw(st.sampled_from(names))}" '
    if kind_of := draw(types):
        text += f"data_type: {kind_of} "
    text += "".join(f"dims: {each} " for each in draw(dims))
    if draw(st.integers(0, 9)) == 0:
        text += "reshape { shape: 4 } "
    if kind == "input" and draw(st.integers(0, 9)) == 0:
        text += draw(st.sampled_from(["optional: true ", "allow_ragged_batch: true "]))
    return text + "}\n"


@st.composite
def configurations(draw, inputs, outputs):
    text = f"max_batch_size: {draw(st.sampled_from([0, 0, 1, 4]))}\n"
    for kind, names in (("input", inputs), ("output", outputs)):
        for each in draw(st.lists(tensor(kind, names), max_size=2)):
            text += each
    text += draw(
        st.sampled_from(
            [
                "",
                "",
                "dynamic_batching { }\n",
                "dynamic_batching { preferred_batch_size: 4 }\n",
                "instance_group { count: 2 }\n",
                "response_cache { enable: true }\n",
                'model_warmup { name: "w" batch_size: 1 inputs { key: "x" value { '
                "data_type: TYPE_FP32 dims: 4 zero_data: true } } }\n",
            ]
        )
    )
    return text


def agree(folder, root):
    checked = check_model(folder, root, Settings(Options.defaults(), (), plugins.formats()))
    errors = [each.text for each in checked.report.findings if each.level == "error"]
    unsure = [each.text for each in checked.report.findings if each.rule == "unchecked"]
    refused = ""
    try:
        offline_model(folder, Options.defaults(), tried=True)
    except Exception as error:  # a backend may raise anything
        refused = str(error) or type(error).__name__
    warm = [each for each in errors if "warm-up" in each]  # offline, no instance is warmed up
    assert bool(refused) == (len(errors) > len(warm)) or (unsure and not errors), (
        folder.joinpath("config.pbtxt").read_text(),
        refused,
        errors,
    )


@pytest.fixture(autouse=True)
def _quiet():
    logging.getLogger("core").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("core").setLevel(logging.NOTSET)


many = settings(max_examples=40, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", sorted(FILES))
def test_onnx_models(name, tmp_path):
    folder = write(tmp_path / name, {"1/model.onnx": FILES[name]})

    @many
    @given(configurations(["x", "x", "z", "v"], ["y", "y", "w", "v"]))
    def each(text):
        (folder / "config.pbtxt").write_text(text)
        agree(folder, tmp_path)

    each()


def test_forests(tmp_path):
    folder = write(tmp_path / "forest", {"1/xgboost.json": tree()})

    @many
    @given(configurations(["input__0"], ["output__0", "output__0", "treeshap_output", "v"]))
    def each(text):
        (folder / "config.pbtxt").write_text('backend: "fil"\n' + text)
        agree(folder, tmp_path)

    each()


def test_programs_of_torch(tmp_path):
    torch = pytest.importorskip("torch")
    folder = write(tmp_path / "program", {"1/": ""})
    torch.jit.trace(torch.nn.Linear(4, 4), torch.zeros(2, 4)).save(str(folder / "1" / "model.pt"))

    @many
    @given(configurations(["input", "x__0", "x__3", "v"], ["y__0", "y__0", "v"]))
    def each(text):
        (folder / "config.pbtxt").write_text(text)
        agree(folder, tmp_path)

    each()


def test_models_of_openvino(tmp_path):
    openvino = pytest.importorskip("openvino")
    folder = write(tmp_path / "network", {"1/": ""})
    made = openvino.convert_model(_onnx(tmp_path))
    openvino.save_model(made, folder / "1" / "model.xml")

    @many
    @given(configurations(["x", "x", "v"], ["y", "y", "v"]))
    def each(text):
        (folder / "config.pbtxt").write_text(text)
        agree(folder, tmp_path)

    each()


def _onnx(folder):
    path = folder / "source.onnx"
    path.write_bytes(FILES["batches"])
    return str(path)
