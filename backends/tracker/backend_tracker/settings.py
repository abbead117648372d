"""The parameters of a model, from config.pbtxt and tracker.json.

config.pbtxt, tracker.json ─► [settings] ─► Streams.  Names and defaults are those of the package `trackers`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.config import ModelConfig
from core.errors import CoreError, invalid

FILE = "tracker.json"
TRACKER = "tracker"
MATCHING = "minimum_matching_threshold"  # of the package `supervision`: 1 - minimum_iou_threshold
FRAMES_PER_S = 30  # of lost_track_buffer

Value = str | int | float | bool

# For each tracker: parameter → default.
_EVERY: dict[str, Value] = {
    "frame_rate": 30.0,
    "high_conf_det_threshold": 0.6,
    "lost_track_buffer": 30,
    "report_lost_tracks": False,
}
DEFAULTS: dict[str, dict[str, Value]] = {
    "bytetrack": {
        **_EVERY,
        "minimum_consecutive_frames": 2,
        "minimum_iou_threshold": 0.1,
        "track_activation_threshold": 0.7,
    },
    "ocsort": {
        **_EVERY,
        "delta_t": 3,
        "direction_consistency_weight": 0.2,
        "minimum_consecutive_frames": 3,
        "minimum_iou_threshold": 0.3,
    },
    "botsort": {
        **_EVERY,
        "instant_first_frame_activation": True,
        "minimum_consecutive_frames": 2,
        "minimum_iou_threshold_first_assoc": 0.2,
        "minimum_iou_threshold_second_assoc": 0.5,
        "minimum_iou_threshold_unconfirmed_assoc": 0.3,
        "track_activation_threshold": 0.7,
    },
}
PARAMETERS = tuple(
    sorted({TRACKER, MATCHING, *(name for each in DEFAULTS.values() for name in each)})
)

# The largest counts: a track must not live for days, and numbers must fit into an int.
_LARGEST = {
    "lost_track_buffer": 1_000_000,
    "minimum_consecutive_frames": 1_000_000,
    "delta_t": 1000,
}
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class Settings:
    """The parameters of one model. A tracker ignores those that it does not have.

    lost_frames   frames without a detection after which a track ends: lost_track_buffer at 30 frames per
                  second, at the model's frame_rate
    """

    tracker: str
    frame_rate: float
    lost_track_buffer: int
    report_lost_tracks: bool
    high_conf_det_threshold: float
    track_activation_threshold: float = 0.0
    minimum_consecutive_frames: int = 1
    minimum_iou_threshold: float = 0.0
    minimum_iou_threshold_second_assoc: float = 0.0
    minimum_iou_threshold_unconfirmed_assoc: float = 0.0
    direction_consistency_weight: float = 0.0
    delta_t: int = 1
    instant_first_frame_activation: bool = False

    @property
    def lost_frames(self) -> int:
        if not self.lost_track_buffer:
            return 0
        return max(1, math.ceil(self.frame_rate / FRAMES_PER_S * self.lost_track_buffer))


def settings_of(config: ModelConfig, path: Path) -> Settings:
    """Return the parameters of a model. config.pbtxt takes precedence over the file.

    path   folder of the version
    Raises CoreError(INVALID) that names the model, the file, the parameter and what it may be.
    """
    file = path / (config.default_model_filename or FILE)
    given = _of_file(file, required=config.default_model_filename not in ("", FILE))
    place = dict.fromkeys(given, f"'{file}'")
    for name, entry in config.parameters.items():
        if name in PARAMETERS:
            given[name] = entry.string_value.strip()
            place[name] = "config.pbtxt"
    return _Reader(config.name, given, place).settings()


def _of_file(file: Path, required: bool) -> dict[str, Value]:
    """Return the parameters in a file; none if there is no file and it is not required."""
    try:
        text = file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        if required:
            raise invalid(f"'{file}' does not exist, and default_model_filename names it") from None
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise invalid(f"'{file}' cannot be read: {error}") from error
    try:
        found = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise invalid(f"'{file}' is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise invalid(
            f"'{file}' is a JSON {type(found).__name__}, it must be an object of parameters"
        )
    for name, value in found.items():
        if not isinstance(value, (str, int, float, bool)):
            raise invalid(
                f"'{file}': '{name}' is {json.dumps(value)}, it must be a number or a text"
            )
    return found


class _Reader:
    """Reads one model's parameters.

    given   parameter → value: text, or a number of JSON
    place   parameter → where it is set, for errors
    """

    def __init__(self, model: str, given: Mapping[str, Value], place: Mapping[str, str]):
        self._model = model
        self._given = dict(given)
        self._place = place

    def settings(self) -> Settings:
        tracker = str(self._given.pop(TRACKER, "bytetrack"))
        if tracker not in DEFAULTS:
            self._given[TRACKER] = tracker
            raise self._wrong(TRACKER, " or ".join(DEFAULTS))
        defaults = DEFAULTS[tracker]
        first = "minimum_iou_threshold"
        if first not in defaults:
            first += "_first_assoc"
        self._translate_matching(first)
        for name in self._given:
            if name not in defaults:
                raise invalid(
                    f"model '{self._model}': {self._place[name]} sets '{name}', which tracker '{tracker}' "
                    f"does not have; its parameters are {', '.join(sorted(defaults))}"
                )
        values = {name: self._value(name, default) for name, default in defaults.items()}
        values["minimum_iou_threshold"] = values.pop(first)
        return Settings(tracker, **values)  # type: ignore[arg-type]

    def _translate_matching(self, first: str) -> None:
        """Replace minimum_matching_threshold, the largest 1 - overlap, by the least overlap."""
        if MATCHING not in self._given:
            return
        if first in self._given:
            raise invalid(
                f"model '{self._model}' has '{MATCHING}' and '{first}', which mean the same (1 - overlap, "
                "and overlap); remove one of them"
            )
        self._given[first] = 1.0 - self._fraction(MATCHING)
        del self._given[MATCHING]

    def _value(self, name: str, default: Value) -> Value:
        if name not in self._given:
            return default
        if isinstance(default, bool):
            return self._boolean(name)
        if isinstance(default, int):
            return self._count(name)
        if name == "frame_rate":
            return self._rate(name)
        return self._fraction(name)

    def _boolean(self, name: str) -> bool:
        value = _TRUTHS.get(str(self._given[name]).lower())
        if value is None:
            raise self._wrong(name, "true or false")
        return value

    def _count(self, name: str) -> int:
        least, largest = (0 if name == "lost_track_buffer" else 1), _LARGEST[name]
        number = self._number(name)
        if not least <= number <= largest or number != int(number):
            raise self._wrong(name, f"a whole number from {least} to {largest}")
        return int(number)

    def _rate(self, name: str) -> float:
        if not 0 < (number := self._number(name)) <= 100_000:
            raise self._wrong(name, "frames per second, above 0 and at most 100000")
        return number

    def _fraction(self, name: str) -> float:
        if not 0 <= (number := self._number(name)) <= 1:
            raise self._wrong(name, "a number from 0 to 1")
        return number

    def _number(self, name: str) -> float:
        """Return a parameter as float; NaN for another value, which is in no range."""
        value = self._given[name]
        if isinstance(value, bool):
            return math.nan
        try:
            return float(value)
        except (ValueError, OverflowError):
            return math.nan

    def _wrong(self, name: str, expected: str) -> CoreError:
        place = self._place[name]
        return invalid(
            f"model '{self._model}': parameter '{name}' is '{self._given[name]}', it must be {expected}; "
            f"change it in {place}"
        )
