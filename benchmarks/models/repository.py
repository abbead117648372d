"""Model repositories that both Triton and core can serve.

shared        all models of the scenarios except the ONNX model
onnx          the MLP; the wheel of Triton has no backend for it
many          200 models model_000 … model_199, all identity
one, python   models for the measurement of memory and start-up: one identity; two Python models
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from benchmarks.models import mlp

MANY = 200
MOST_ROWS = 32
_PYTHON = Path(__file__).with_name("python")


def tensors(kind: str, names: Sequence[str], dims: int) -> str:
    entries = ", ".join(f'{{ name: "{n}" data_type: TYPE_FP32 dims: [ {dims} ] }}' for n in names)
    return f"{kind} [ {entries} ]\n"


def batched(rows: int) -> str:
    return f"max_batch_size: {rows}\ndynamic_batching {{ }}\n" if rows else ""


def identity(folder: Path, dims: int = -1, rows: int = 0) -> None:
    """Write an identity model. `dims` -1 accepts vectors of any size; `rows` 0 is no batch dimension."""
    _config(
        folder,
        'backend: "identity"\n'
        + batched(rows)
        + tensors("input", ["INPUT0"], dims)
        + tensors("output", ["OUTPUT0"], dims),
    )
    (folder / "1").mkdir()


def add_sub(folder: Path, rows: int = 0, mode: str = "") -> None:
    """Write a Python model. `mode` is EXECUTION_MODE, which Triton ignores."""
    where = f'parameters {{ key: "EXECUTION_MODE" value {{ string_value: "{mode}" }} }}\n'
    _config(
        folder,
        'backend: "python"\n'
        + batched(rows)
        + (where if mode else "")
        + tensors("input", ["INPUT0", "INPUT1"], 16)
        + tensors("output", ["OUTPUT0", "OUTPUT1"], 16),
    )
    (folder / "1").mkdir()
    shutil.copy(_PYTHON / "add_sub.py", folder / "1" / "model.py")


def onnx_mlp(folder: Path) -> None:
    # One thread: the server has one core.
    _config(
        folder,
        'backend: "onnxruntime"\n'
        + batched(MOST_ROWS)
        + tensors("input", ["INPUT0"], mlp.SIZES[0])
        + tensors("output", ["OUTPUT0"], mlp.SIZES[-1])
        + "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
        + 'parameters { key: "intra_op_thread_count" value: { string_value: "1" } }\n',
    )
    mlp.write(folder / "1" / "model.onnx")


def ensemble(folder: Path, step: str, steps: int) -> None:
    """Write an ensemble that runs the model `step` `steps` times in sequence."""
    names = ["INPUT0", *(f"between{index}" for index in range(1, steps)), "OUTPUT0"]
    chain = ", ".join(
        f'{{ model_name: "{step}" model_version: -1 '
        f'input_map {{ key: "INPUT0" value: "{before}" }} '
        f'output_map {{ key: "OUTPUT0" value: "{after}" }} }}'
        for before, after in pairwise(names)
    )
    _config(
        folder,
        'platform: "ensemble"\n'
        + tensors("input", ["INPUT0"], -1)
        + tensors("output", ["OUTPUT0"], -1)
        + f"ensemble_scheduling {{ step [ {chain} ] }}\n",
    )
    (folder / "1").mkdir()


def _config(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    (folder / "config.pbtxt").write_text(f'name: "{folder.name}"\n{text}')


def shared(root: Path) -> None:
    identity(root / "identity")
    identity(root / "identity_batched", rows=MOST_ROWS)
    identity(root / "identity_64", dims=64, rows=MOST_ROWS)
    identity(root / "identity_1mb")
    identity(root / "identity_16mb")
    add_sub(root / "add_sub")
    add_sub(root / "add_sub_batched", rows=MOST_ROWS)
    add_sub(root / "add_sub_inline", mode="inline")
    add_sub(root / "add_sub_inline_batched", rows=MOST_ROWS, mode="inline")
    ensemble(root / "three_steps", "identity", 3)


def many_names() -> list[str]:
    return [f"model_{index:03}" for index in range(MANY)]


def many(root: Path) -> None:
    for name in many_names():
        identity(root / name)


def python(root: Path) -> None:
    add_sub(root / "add_sub")
    add_sub(root / "add_sub_batched", rows=MOST_ROWS)


REPOSITORIES: dict[str, Callable[[Path], None]] = {
    "shared": shared,
    "onnx": lambda root: onnx_mlp(root / "mlp"),
    "many": many,
    "one": lambda root: identity(root / "identity"),
    "python": python,
}


def write(root: Path, name: str) -> Path:
    """Write the repository `name` below `root`, unless it exists; return its folder."""
    folder = root / name
    if not folder.exists():
        REPOSITORIES[name](folder)
    return folder
