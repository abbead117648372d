"""Deprecated flags: each still works, and prints a warning that names its replacement to stderr."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core.options.values import read_bool, read_int

Rewrite = Callable[[str], "tuple[str, str] | None"]


@dataclass(frozen=True)
class Deprecated:
    """A deprecated flag.

    rewrite   value → equivalent (flag, value) of today; None if the value changes nothing
    warning   text for stderr; {value} stands for the value of the flag
    """

    name: str
    metavar: str
    rewrite: Rewrite
    warning: str


ALIASES = {"model-store": "model-repository"}


def _strict_model_config(text: str) -> tuple[str, str] | None:
    return ("disable-auto-complete-config", "") if read_bool("strict-model-config", text) else None


def _cache_size(text: str) -> tuple[str, str] | None:
    size = read_int("response-cache-byte-size", text)
    return ("cache-config", f"local,size={size}") if size else None


def _renamed(name: str, setting: str, what: str, metavar: str = "<integer>") -> Deprecated:
    return Deprecated(
        name,
        metavar,
        lambda text: ("trace-config", f"{setting}={text}"),
        f"Warning: '--{name}' has been deprecated and will be removed in future releases. "
        f"Please use '--trace-config {setting}={what} instead.",
    )


DEPRECATED = {
    flag.name: flag
    for flag in (
        Deprecated(
            "strict-model-config",
            "<boolean>",
            _strict_model_config,
            "Warning: '--strict-model-config' has been deprecated! "
            "Please use '--disable-auto-complete-config' instead.",
        ),
        Deprecated(
            "response-cache-byte-size",
            "<integer>",
            _cache_size,
            "Warning: '--response-cache-byte-size' has been deprecated! This will default to the "
            "'local' cache implementation with the provided byte size for its config. Please use "
            "'--cache-config' instead. The equivalent --cache-config CLI args would be: "
            "'--cache-config=local,size={value}'",
        ),
        _renamed("trace-file", "triton,file", "<filepath>", "<string>"),
        _renamed("trace-level", "level", "<OFF|TIMESTAMPS|TENSORS>", "<string>"),
        _renamed("trace-rate", "rate", "<rate value>"),
        _renamed("trace-count", "count", "<count value>"),
        _renamed("trace-log-frequency", "triton,log-frequency", "<value>"),
    )
}
