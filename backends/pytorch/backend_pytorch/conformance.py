"""Small PyTorch models and their expected answers, by kinds of file: python -m core_testing pytorch"""

import functools
import io
import warnings
from pathlib import Path
from typing import Any, List, Tuple  # noqa: UP035 - TorchScript knows these

import numpy as np
import pytest
import torch
from core_testing import BackendConformance, Example
from torch import Tensor, nn

from backend_pytorch import backend

# Tests on a GPU also need one that core sees.
GPU = {"gpu"} if torch.cuda.is_available() else set()
X = np.arange(12, dtype=np.float32).reshape(4, 3)
INDEX = np.array([[0], [2], [1], [0]], np.int64)
PICK = """
backend: "pytorch" max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] }, { name: "index" data_type: TYPE_INT64 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] }, { name: "picked" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
TEXT = """
backend: "pytorch" max_batch_size: 8
input [ { name: "words" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "OUTPUT__0" data_type: TYPE_STRING dims: [ 1 ] } ]
"""
ANY = """
backend: "pytorch" max_batch_size: 8
input [ { name: "x" data_type: TYPE_INT32 dims: [ -1, -1 ] } ]
output [ { name: "y" data_type: TYPE_INT32 dims: [ -1, -1 ] } ]
"""


class Pick(nn.Module):  # type: ignore[misc]  # types of torch are not read
    """y = 2x; picked = the element of each row at position index, which raises out of range."""

    def forward(self, x: Tensor, index: Tensor) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        return x * 2, torch.gather(x, 1, index)


class Identity(nn.Module):  # type: ignore[misc]  # types of torch are not read
    """y = x."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class Echo(nn.Module):  # type: ignore[misc]  # types of torch are not read
    """Return the words."""

    def forward(self, words: List[str]) -> List[str]:  # noqa: UP006
        return words


def example_of(
    folder: Path, config: str, y: str = "y", picked: str = "picked", *, described: bool = False
) -> Example:
    """Return the example of a folder with Pick, whose outputs have these names.

    described   whether its file says datatypes and shapes
    """
    inputs: dict[str, Any] = {"x": X, "index": INDEX}
    failing = inputs | {"index": INDEX + 100}
    expected = {y: 2 * X, picked: np.take_along_axis(X, INDEX, 1)}
    return Example(backend, folder, inputs, expected, config, failing, described=described)


def script(module: nn.Module, path: Path) -> None:
    """Save a module as TorchScript."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated, but its files stay in use
        torch.jit.save(torch.jit.script(module.eval()), str(path))


class TestTorchScript(BackendConformance):
    supports = {"batching", "cpu", "dynamic_shape", "strings"} | GPU

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        script(Pick(), tmp_path / "model.pt")
        return example_of(tmp_path, PICK)

    @pytest.fixture
    def strings_example(self, tmp_path: Path) -> Example:
        script(Echo(), tmp_path / "model.pt")
        text = np.array([[b""], ["ä€𝄞".encode()], [b"two words"], [b"a\0b"]], object)
        return Example(
            backend, tmp_path, inputs={"words": text}, expected={"OUTPUT__0": text}, config=TEXT
        )

    @pytest.fixture
    def other_shapes(self, tmp_path: Path) -> list[Example]:
        script(Identity(), tmp_path / "model.pt")
        arrays = [np.full(shape, 5, np.int32) for shape in ((1, 2, 3), (2, 0, 1), (3, 4, 1))]
        return [
            Example(backend, tmp_path, inputs={"x": each}, expected={"y": each}, config=ANY)
            for each in arrays
        ]


class TestModuleInPython(BackendConformance):
    supports = {"batching", "cpu"} | GPU

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        (tmp_path / "model.py").write_text(
            "import torch\n\n"
            "class Pick(torch.nn.Module):\n"
            "    def forward(self, x, index):\n"
            "        return x * 2, torch.gather(x, 1, index)\n"
        )
        return example_of(tmp_path, 'runtime: "model.py" ' + PICK)


@functools.cache
def exported() -> bytes:
    """Return the content of a file of torch.export. The cache saves a second per call."""
    rows = torch.export.Dim("rows", min=1, max=8)
    arguments = (torch.from_numpy(X), torch.from_numpy(INDEX))
    shapes = {"x": {0: rows}, "index": {0: rows}}
    file = io.BytesIO()
    torch.export.save(torch.export.export(Pick().eval(), arguments, dynamic_shapes=shapes), file)
    return file.getvalue()


class TestExported(BackendConformance):
    supports = {"batching", "cpu"} | GPU
    loads = 20

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        (tmp_path / "model.pt2").write_bytes(exported())
        config = PICK.replace('"y"', '"OUTPUT__0"').replace('"picked"', '"OUTPUT__1"')
        config = 'default_model_filename: "model.pt2" ' + config
        return example_of(tmp_path, config, "OUTPUT__0", "OUTPUT__1", described=True)
