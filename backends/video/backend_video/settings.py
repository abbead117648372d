"""The parameters of a model, and those of a request, which may restrict them further.

config.pbtxt ─► [Settings] ─► + the parameters of a request ─► [Wishes]
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backend_video import hardware
from backend_video.addresses import Network
from backend_video.hardware import Hardware
from backend_video.pictures import FORMATS
from backend_video.rules import SCHEMES, HostRule, Rules
from core.config import ModelConfig
from core.errors import CoreError, invalid
from core.similar import did_you_mean

POLICIES = ("auto", "all", "latest")
TRANSPORTS = ("tcp", "udp")


@dataclass(frozen=True)
class Number:
    """A parameter that is a number. 0 means no limit, if `least` is 0 and the default is 0."""

    default: float
    least: float
    most: float
    whole: bool = True

    @property
    def expected(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {self.least:g} to {self.most:g}"


# What a request may set, too. Of two numbers the one that means less work counts.
NUMBERS = {
    "every": Number(1, 1, 1_000_000),
    "rate": Number(0, 0, 1000, whole=False),
    "frames": Number(0, 0, 1e12),
    "duration_s": Number(86_400, 0, 1e9, whole=False),
    "max_width": Number(0, 0, 65_535),
    "max_height": Number(0, 0, 65_535),
}
CHOICES: dict[str, tuple[str, ...]] = {
    "policy": POLICIES,
    "transport": TRANSPORTS,
    "realtime": ("false", "true"),
}
# What only the model sets.
LIMITS = {
    "max_megapixels": Number(50, 0.0001, 1000, whole=False),
    "max_megabytes": Number(2000, 0.0001, 1e6, whole=False),
    "timeout_s": Number(10, 0.01, 3600, whole=False),
    "reconnect_s": Number(30, 0, 1e9, whole=False),
    "threads": Number(1, 1, 64),
}
HOSTS, NETWORKS, FOLDERS, FORMAT, SCHEME = "hosts", "networks", "folders", "format", "schemes"
HARDWARE = "hardware"
PARAMETERS = (*NUMBERS, *CHOICES, *LIMITS, HOSTS, NETWORKS, FOLDERS, FORMAT, SCHEME, HARDWARE)
OF_REQUESTS = (*NUMBERS, *CHOICES)


@dataclass(frozen=True)
class Wishes:
    """What is delivered of a stream. Zeros mean no limit.

    every       each n-th decoded frame
    rate        frames per second of the film
    frames      after how many the answer ends
    duration_s  of the film, after which the answer ends
    realtime    whether a file is played at its own speed
    """

    every: int
    rate: float
    frames: int
    duration_s: float
    max_width: int
    max_height: int
    policy: str
    transport: str
    realtime: bool

    def restricted(self, model: str, parameters: Mapping[str, Any]) -> Wishes:
        """Return what a request with these parameters gets.

        Raises CoreError(INVALID) for a wrong value, and for a name that resembles a parameter.
        """
        changes: dict[str, Any] = {}
        for name, value in parameters.items():
            if name in NUMBERS:
                number = _number(model, name, value, NUMBERS[name], "the request")
                own = getattr(self, name)
                changes[name] = max(own, number) if name == "every" else _smaller(own, number)
            elif name in CHOICES:
                chosen = _choice(model, name, value, CHOICES[name], "the request")
                changes[name] = chosen == "true" if name == "realtime" else chosen
            elif hint := did_you_mean(name, OF_REQUESTS):
                raise invalid(f"model '{model}' has no request parameter '{name}'{hint}")
        return replace(self, **changes) if changes else self


@dataclass(frozen=True)
class Settings:
    """The parameters of a model.

    rules        what clients may name
    wishes       for requests without parameters
    format       of frames, a key of pictures.FORMATS
    most_pixels  of a decoded frame
    most_bytes   of a file, and of what a web server sends
    timeout_s    of a source that does not answer
    reconnect_s  for which a lost source is tried again
    threads      that decode one stream, and convert its frames
    hardware     as in config.pbtxt
    device       on which FFmpeg decodes; None for the CPU, and until the model is loaded
    """

    rules: Rules
    wishes: Wishes
    format: str
    most_pixels: int
    most_bytes: int
    timeout_s: float
    reconnect_s: float
    threads: int
    hardware: str
    device: Hardware | None = None


def settings_of(config: ModelConfig, directory: Path) -> Settings:
    """Return the parameters of a model.

    directory   of the model; folders may be relative to it
    Raises CoreError(INVALID) that names the model, the parameter, and what it may be.
    """
    given = {
        name: entry.string_value.strip()
        for name, entry in config.parameters.items()
        if name in PARAMETERS
    }
    model, place = config.name, "config.pbtxt"

    def number(name: str, kind: Number) -> float:
        return _number(model, name, given[name], kind, place) if name in given else kind.default

    def choice(name: str, choices: tuple[str, ...]) -> str:
        return _choice(model, name, given.get(name, choices[0]), choices, place)

    limits = {name: number(name, kind) for name, kind in LIMITS.items()}
    values: dict[str, Any] = {name: number(name, kind) for name, kind in NUMBERS.items()}
    for name, kind in NUMBERS.items():
        values[name] = int(values[name]) if kind.whole else values[name]
    for name, choices in CHOICES.items():
        values[name] = choice(name, choices)
    values["realtime"] = values["realtime"] == "true"
    return Settings(
        _rules(model, given, directory),
        Wishes(**values),
        choice(FORMAT, tuple(FORMATS)),
        int(limits["max_megapixels"] * 1e6),
        int(limits["max_megabytes"] * 1e6),
        limits["timeout_s"],
        limits["reconnect_s"],
        int(limits["threads"]),
        _hardware(model, given.get(HARDWARE, hardware.NONE)),
    )


def _hardware(model: str, text: str) -> str:
    if not hardware.is_known(text):
        raise _wrong(model, HARDWARE, text, hardware.expected(), "config.pbtxt")
    return text


def _rules(model: str, given: Mapping[str, str], directory: Path) -> Rules:
    schemes = tuple(_words(given.get(SCHEME, ",".join(SCHEMES))))
    if unknown := [each for each in schemes if each not in SCHEMES]:
        raise _wrong(model, SCHEME, unknown[0], f"a list of {', '.join(SCHEMES)}", "config.pbtxt")
    networks: list[Network] = []
    for each in _words(given.get(NETWORKS, "")):
        try:
            networks.append(ipaddress.ip_network(each))
        except ValueError:
            expected = "a list of networks such as 10.1.0.0/16 and of addresses"
            raise _wrong(model, NETWORKS, each, expected, "config.pbtxt") from None
    folders = []
    for each in _words(given.get(FOLDERS, "")):
        folder = (directory / each).resolve()
        if not folder.is_dir():
            raise _wrong(model, FOLDERS, each, "a list of folders", "config.pbtxt")
        folders.append(folder)
    hosts = tuple(_host(model, each) for each in _words(given.get(HOSTS, "")))
    return Rules(schemes, hosts, tuple(networks), tuple(folders))


def _host(model: str, text: str) -> HostRule:
    """Return the rule of HOST, HOST:PORT or HOST:*; an address of IPv6 has brackets."""
    name, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        name, port = text, ""
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    wrong = not name or "/" in name or "@" in name
    if port and port != "*":
        wrong = wrong or not (port.isascii() and port.isdecimal() and 0 < int(port) < 65_536)
    if wrong:
        expected = (
            "a list of HOST, HOST:PORT and HOST:*, in which a * stands for any part of a name"
        )
        raise _wrong(model, HOSTS, text, expected, "config.pbtxt")
    number = None if not port else 0 if port == "*" else int(port)
    return HostRule(name.lower().rstrip("."), number)


def _words(text: str) -> list[str]:
    return [word for each in text.split(",") if (word := each.strip())]


def _smaller(one: float, other: float) -> float:
    """Return the smaller of two limits, of which 0 is none."""
    return min(one, other) if one and other else one or other


def _number(model: str, name: str, value: Any, kind: Number, place: str) -> float:
    found = math.nan
    if not isinstance(value, bool):
        try:
            found = float(value)
        except (ValueError, OverflowError):
            pass
    if not kind.least <= found <= kind.most or (kind.whole and found != int(found)):
        raise _wrong(model, name, value, kind.expected, place)
    return int(found) if kind.whole else found


def _choice(model: str, name: str, value: Any, choices: tuple[str, ...], place: str) -> str:
    text = str(value).lower() if name == "realtime" else str(value)
    if text not in choices:
        raise _wrong(model, name, value, " or ".join(choices), place)
    return text


def _wrong(model: str, name: str, value: Any, expected: str, place: str) -> CoreError:
    return invalid(
        f"model '{model}': parameter '{name}' of {place} is '{value}', it must be {expected}"
    )
