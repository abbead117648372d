"""read_recipe: image.json ─► the Stage of a model.

The file is a list of steps: [{"decode": {}}, {"resize": {"size": 224}}, {"tensor": {"layout": "NCHW"}}]
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from backend_image.decode import Decode
from backend_image.detections import Detections
from backend_image.draw import Draw, Encode, Encoder
from backend_image.maps import Keypoints, Masks
from backend_image.options import Options
from backend_image.prepare import Prepare
from backend_image.shape import Step, steps
from backend_image.skeleton import DrawKeypoints
from backend_image.stage import Stage
from backend_image.tensor import ToTensor
from backend_image.top_k import TopK
from core.errors import invalid

FILE = "image.json"
NV12 = "NV12"  # a value of the option `colour`
_LARGEST_BYTES = 1_000_000

_ALONE: dict[str, Callable[[Options, Path], Stage]] = {
    "top_k": TopK,
    "detections": Detections,
    "keypoints": lambda options, folder: Keypoints(options),
    "masks": lambda options, folder: Masks(options),
}
_DRAWN: dict[str, Callable[[Options, Encoder], Stage]] = {
    "draw": Draw,
    "draw_keypoints": DrawKeypoints,
}
_FIRST = ("decode", "pixels", *_ALONE, *_DRAWN, "encode")


def read_recipe(file: Path) -> Stage:
    """Return the stage that a file describes. Raises CoreError(INVALID) with the file and the step."""
    return _Recipe(file).stage()


class _Recipe:
    """Reads the steps of a file, (name, options) in their order, and makes the stage of them."""

    def __init__(self, file: Path):
        self._file = file
        found = _json(file)
        if not isinstance(found, list) or not found:
            raise invalid(f"'{file}' must be a list of steps, such as [{{\"decode\": {{}}}}, …]")
        self._steps: list[tuple[str, Options]] = []
        for number, step in enumerate(found):
            if not isinstance(step, dict) or len(step) != 1:
                raise invalid(
                    f"'{file}': step {number} is {_short(step)}, it must be an object with one name, such as "
                    '{"resize": {"size": 224}}'
                )
            ((name, options),) = step.items()
            if not isinstance(options, dict):
                raise invalid(
                    f"'{file}': step {number} ({name}) has {_short(options)} in place of its options, which "
                    'are an object, such as {"size": 224}'
                )
            self._steps.append((name, Options(options, f"'{file}': step {number} ({name})")))

    def stage(self) -> Stage:
        name = self._steps[0][0]
        made: Stage
        if name in ("decode", "pixels"):
            made = self._prepare()
        elif name in _DRAWN or name == "encode":
            made = self._picture()
        elif name in _ALONE:
            self._only(name)
            made = _ALONE[name](self._steps[0][1], self._file.parent)
        else:
            raise self._unknown(0, _FIRST)
        for _, options in self._steps:
            options.done()
        return made

    def _prepare(self) -> Prepare:
        first, options = self._steps[0]
        decode = Decode(options) if first == "decode" else None
        colour = "" if decode is not None else options.choice("colour", "RGB", ("RGB", "BGR", NV12))
        red_first = colour in ("RGB", NV12)
        channels = 1 if decode is not None and decode.grey else 3
        known = steps(channels, red_first)
        chosen: list[Step] = []
        for number, (name, given) in enumerate(self._steps[1:-1], 1):
            if name not in known:
                raise self._unknown(number, tuple(known))
            chosen.append(known[name](given))
        if len(self._steps) < 2 or self._steps[-1][0] != "tensor":
            raise self._unknown(len(self._steps) - 1, ("tensor",), " as the last step")
        to_tensor = ToTensor(self._steps[-1][1], channels, red_first)
        return Prepare(decode, chosen, to_tensor, nv12=colour == NV12)

    def _picture(self) -> Stage:
        name, options = self._steps[0]
        if name == "encode":
            self._only(name)
            colour = options.choice("colour", "RGB", ("RGB", NV12))
            return Encode(Encoder(options), options.text("input", "pixels"), nv12=colour == NV12)
        if len(self._steps) != 2 or self._steps[1][0] != "encode":
            where = f" after {name}, as the last step"
            raise self._unknown(len(self._steps) - 1, ("encode",), where)
        return _DRAWN[name](options, Encoder(self._steps[1][1]))

    def _only(self, name: str) -> None:
        if len(self._steps) > 1:
            raise invalid(
                f"'{self._file}': the step {name} must be the only one, not one of {len(self._steps)}; make "
                "a model of each, and an ensemble of the models"
            )

    def _unknown(self, number: int, expected: tuple[str, ...], where: str = "") -> Exception:
        return invalid(
            f"'{self._file}': step {number} is '{self._steps[number][0]}', expected "
            f"{' or '.join(expected)}{where}"
        )


def _json(file: Path) -> Any:
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise invalid(
            f"'{file}' cannot be read: {error.strerror}; a model of this backend needs it"
        ) from error
    if len(data) > _LARGEST_BYTES:
        raise invalid(
            f"'{file}' has more than {_LARGEST_BYTES} bytes, it cannot be a list of steps"
        )
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise invalid(f"'{file}' is not JSON: {error}") from error


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "…"
