"""Modules in Python files: runtime "model.py"."""

import os
import sys

import numpy as np
import pytest
import torch
from backend_pytorch import backend
from core_testing.served import Served

from core.errors import CoreError

CONFIG = """
backend: "pytorch" runtime: "model.py" max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""
CODE = """
from torch import nn

class Line(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(2, 3)
        self.dropout = nn.Dropout(0.9)

    def forward(self, x):
        return self.dropout(self.line(x))
"""
X = np.array([[1, 2]], np.float32)


class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(2, 3)


def files(code=CODE, weights=None, name="model"):
    def fill(folder):
        (folder / f"{name}.py").write_text(code)
        if weights is not None:
            torch.save(weights, folder / f"{name}.pt")

    return fill


@pytest.fixture
def weights():
    torch.manual_seed(2)
    return Line().state_dict()


def expected(weights, x):
    return x @ weights["line.weight"].numpy().T + weights["line.bias"].numpy()


@pytest.mark.parametrize("file", ["model", "net"])
def test_a_class_gets_its_weights_and_is_in_evaluation_mode(serve, weights, file):
    named = f'default_model_filename: "{file}.py"' if file != "model" else ""
    model = serve(files(weights=weights, name=file), CONFIG + named)

    np.testing.assert_allclose(model(x=X)["OUTPUT__0"], expected(weights, X), rtol=1e-5)


def test_instances_have_the_same_weights_without_a_file_too(serve):
    config = CONFIG + "instance_group [ { count: 3 kind: KIND_CPU } ]"
    model = serve(files(), config)

    answers = [model(x=X)["OUTPUT__0"].tolist() for _ in range(9)]

    assert answers == [answers[0]] * 9


def test_weights_that_hold_code_are_not_unpickled(serve, tmp_path):
    touched = tmp_path / "touched"

    class Harmful:
        def __reduce__(self):
            return (os.mkdir, (str(touched),))

    with pytest.raises(CoreError, match="only a state dict of plain tensors is read") as caught:
        serve(files(weights={"line.weight": Harmful()}), CONFIG)
    assert "mkdir" in caught.value.message
    assert "to `False`" not in caught.value.message  # torch's advice
    assert not touched.exists()


@pytest.mark.parametrize(
    ("code", "saved", "text"),
    [
        (
            CODE,
            {"other": torch.ones(1)},
            r"(?s)the weights of '.*' do not fit class Line.*Missing key",
        ),
        (CODE, [torch.ones(1)], "holds a list, not a state dict"),
        ("x = 1", None, "has no subclass of torch.nn.Module"),
        ("1/0", None, "cannot be imported: ZeroDivisionError"),
        ("raise SystemExit(3)", None, r"model.py' cannot be imported: SystemExit: 3"),
        (
            CODE.replace("self):", "self, width):", 1),
            None,
            r"Line\(\) of '.*' failed.*without arguments",
        ),
        (CODE.replace("self, x", "self, *, x"), None, "takes 'x' by keyword only"),
    ],
)
def test_an_unsupported_model_is_an_error(serve, code, saved, text):
    with pytest.raises(CoreError, match=text):
        serve(files(code, saved), CONFIG)


def test_the_first_of_several_modules_or_the_named_one_is_served(serve, caplog):
    code = (
        "from torch import nn\n"
        "class One(nn.Module):\n    def forward(self, x): return x.new_ones((len(x), 3))\n"
        "class Two(One):\n    def forward(self, x): return super().forward(x) * 2\n"
    )
    named = 'parameters { key: "MODEL_CLASS" value: { string_value: "Two" } }'

    assert serve(files(code), CONFIG)(x=X)["OUTPUT__0"].tolist() == [[1, 1, 1]]
    assert "has several modules (One, Two); One is served" in caplog.text
    assert serve(files(code), CONFIG + named)(x=X)["OUTPUT__0"].tolist() == [[2, 2, 2]]
    with pytest.raises(CoreError, match=r"'MODEL_CLASS' is 'Three', '.*' has One, Two"):
        serve(files(code), CONFIG + named.replace('"Two"', '"Three"'))


def test_torch_compile_gets_its_parameters(serve, weights):
    """The test uses a backend of torch.compile that needs no compiler."""
    options = '{\\"backend\\": \\"eager\\", \\"dynamic\\": true}'
    more = (
        'parameters { key: "TORCH_COMPILE_OPTIONAL_PARAMETERS" value: { string_value: "'
        + options
        + '" } }'
    )
    model = serve(files(weights=weights), CONFIG + more)

    for rows in (1, 3, 4):
        x = np.full((rows, 2), rows, np.float32)
        np.testing.assert_allclose(model(x=x)["OUTPUT__0"], expected(weights, x), rtol=1e-5)


def test_a_program_of_torchscript_next_to_it_is_served_like_in_triton(serve, modules, script):
    def both(folder):
        (folder / "model.py").write_text("1/0")
        script(modules.Identity(), folder / "model.pt")

    model = serve(both, CONFIG.replace("[ 3 ]", "[ 2 ]"))

    assert model(x=X)["OUTPUT__0"].tolist() == X.tolist()


def test_two_models_may_have_classes_of_one_name(serve, weights):
    before = set(sys.modules)
    serve(files(weights=weights), CONFIG)
    serve(files(CODE.replace("2, 3", "5, 3")), CONFIG.replace("[ 2 ]", "[ 5 ]"))

    assert "model" not in set(sys.modules) - before


def test_two_models_may_have_files_of_one_name_next_to_their_code(tmp_path):
    code = """
import torch
from parts import scale
from more.deep import shift

class Scale(torch.nn.Module):
    def forward(self, x):
        import math  # still found
        return x * scale.BY + shift() + math.floor(0.5)
"""

    def fill(name, by):
        folder = tmp_path / name / "1"
        for package in ("parts", "more"):
            (folder / package).mkdir(parents=True, exist_ok=True)
        (folder.parent / "config.pbtxt").write_text(CONFIG.replace("[ 3 ]", "[ 2 ]"))
        (folder / "model.py").write_text(code)
        (folder / "parts" / "__init__.py").touch()
        (folder / "parts" / "scale.py").write_text(f"BY = {by}")
        (folder / "more" / "deep.py").write_text(f"def shift():\n    return {by}")

    def ask(served, name):
        return served.ask({"x": X}, (), name)["OUTPUT__0"].tolist()

    with Served(backend, tmp_path) as served:
        for name, by in (("a", 2), ("b", 3)):
            fill(name, by)
            served.load(name)
        assert ask(served, "a") == [[4, 6]]
        assert ask(served, "b") == [[6, 9]]

        fill("a", 5)
        served.load("a")

        assert ask(served, "a") == [[10, 15]]
        assert ask(served, "b") == [[6, 9]]
    assert not list(tmp_path.rglob("*.pyc"))


def test_a_file_next_to_the_code_may_be_imported_again_while_it_runs(tmp_path):
    code = """
import torch
import scale_{0}

class Scale(torch.nn.Module):
    def forward(self, x):
        from scale_{0} import BY
        return x * BY
"""
    for name, by in (("a", 2), ("b", 3)):
        folder = tmp_path / name / "1"
        folder.mkdir(parents=True)
        (folder.parent / "config.pbtxt").write_text(CONFIG.replace("[ 3 ]", "[ 2 ]"))
        (folder / "model.py").write_text(code.format(name))
        (folder / f"scale_{name}.py").write_text(f"BY = {by}")
    with Served(backend, tmp_path) as served:
        for name in "ab":
            served.load(name)

        assert served.ask({"x": X}, (), "a")["OUTPUT__0"].tolist() == [[2, 4]]
        assert served.ask({"x": X}, (), "b")["OUTPUT__0"].tolist() == [[3, 6]]


def test_a_refusal_of_torch_compile_is_an_error_with_the_name(serve):
    asked = """parameters { key: "TORCH_COMPILE_OPTIONAL_PARAMETERS"
        value { string_value: '{"backend": "none"}' } }"""

    with pytest.raises(CoreError, match=r"refuses the parameter 'TORCH_COMPILE_.*backend: 'none'"):
        serve(files(), CONFIG + asked)


def test_an_error_of_python_has_its_type(serve):
    code = CODE.replace("return self", "return {}['size'] or self")

    with pytest.raises(CoreError, match="PyTorch execute failure: KeyError: 'size'"):
        serve(files(code), CONFIG)(x=X)
