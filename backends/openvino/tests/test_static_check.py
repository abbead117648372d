"""What is read of an XML file without OpenVINO is what OpenVINO says of it."""

from copy import deepcopy

import numpy as np
import openvino as ov
import pytest
from backend_openvino import backend
from backend_openvino.static_check import check_version
from backend_openvino.tensors import ports_of
from backend_openvino.xml_file import Damaged, read_xml
from openvino import opset13 as ops

from core.config import ModelConfig
from core.errors import CoreError


def dense(shape=(-1, 4), layout="", kind=ov.Type.f32):
    """y = softmax(x · w)."""
    x = ops.parameter(ov.PartialShape(list(shape)), kind, name="x_node")
    x.output(0).get_tensor().set_names({"x"})
    weights = ops.constant(np.ones((4, 3), kind.to_dtype()))
    y = ops.softmax(ops.matmul(x, weights, False, False), 1)
    y.output(0).get_tensor().set_names({"y", "z"})
    model = ov.Model([y], [x], "dense")
    if layout:
        x.set_layout(ov.Layout(layout))
        model.get_results()[0].set_layout(ov.Layout(layout))
    return model


def chosen():
    """A model with two bodies, a text input and an unnamed output."""
    condition = ops.parameter(ov.PartialShape([]), ov.Type.boolean, name="condition")
    x = ops.parameter(ov.PartialShape([2]), ov.Type.f32, name="x")
    inner = ops.parameter(ov.PartialShape([2]), ov.Type.f32, name="inner")
    other = ops.parameter(ov.PartialShape([2]), ov.Type.f32, name="other")
    one = ov.Model([ops.relu(inner)], [inner], "one")
    two = ov.Model([ops.negative(other)], [other], "two")
    made = ops.if_op(condition)
    made.set_then_body(one)
    made.set_else_body(two)
    made.set_input(x.output(0), inner, other)
    result = made.set_output(one.results[0], two.results[0])
    return ov.Model([ops.abs(result)], [condition, x], "chosen")


MODELS = {
    "batches": lambda: dense(layout="NC"),
    "half": lambda: dense(kind=ov.Type.f16),
    "fixed": lambda: dense((2, 4)),
    "bounded": lambda: dense((ov.Dimension(1, 8), 4)),
    "bodies": chosen,
}


@pytest.fixture(params=sorted(MODELS))
def saved(request, tmp_path):
    ov.save_model(MODELS[request.param](), tmp_path / "model.xml", compress_to_fp16=False)
    return tmp_path


def test_the_ports_are_those_of_the_model(saved):
    found = read_xml(saved / "model.xml")

    assert found.ports == ports_of(ov.Core().read_model(saved / "model.xml"))
    assert found.weights <= (saved / "model.bin").stat().st_size
    assert found.version == 11


@pytest.mark.parametrize("rows", [0, 4])
def test_the_check_completes_a_configuration_like_a_load(saved, rows):
    loaded = ModelConfig(name="m", max_batch_size=rows)
    checked = deepcopy(loaded)
    try:
        backend.complete(loaded, saved, backend)
    except CoreError as error:
        with pytest.raises(CoreError) as found:
            check_version(checked, saved, backend)
        assert found.value.message == error.message
        return

    try:
        assert check_version(checked, saved, backend) is True
    except CoreError:  # what a load finds after the completion: a scalar cannot batch
        assert rows
    assert checked == loaded


def test_cut_off_weights_are_found(tmp_path):
    ov.save_model(dense(), tmp_path / "model.xml", compress_to_fp16=False)
    weights = tmp_path / "model.bin"
    weights.write_bytes(weights.read_bytes()[:-1])

    with pytest.raises(CoreError, match="47 bytes, 48 are needed"):
        check_version(ModelConfig(name="m"), tmp_path, backend)
    weights.unlink()
    with pytest.raises(CoreError, match=r"its weights 'model\.bin' are not beside it"):
        check_version(ModelConfig(name="m"), tmp_path, backend)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('version="11"', 'version="99"', "IR version 99"),
        ('version="opset1"', 'version="opset99"', "it uses opset99"),
        ("<net", "<nothing", "begins with <nothing>"),
    ],
)
def test_a_file_that_the_installed_openvino_lacks_is_refused(old, new, text, tmp_path):
    ov.save_model(dense(), tmp_path / "model.xml")
    path = tmp_path / "model.xml"
    path.write_text(path.read_text().replace(old, new, 1))

    with pytest.raises(CoreError, match=text):
        check_version(ModelConfig(name="m"), tmp_path, backend)


def test_a_document_type_is_refused(tmp_path):
    path = tmp_path / "model.xml"
    path.write_text('<!DOCTYPE net [<!ENTITY a "b">]><net version="11">&a;</net>')

    with pytest.raises(Damaged, match="document type"):
        read_xml(path)
