"""ConsoleOptions: the flag --allow-console."""

from __future__ import annotations

from dataclasses import dataclass

from core.options import Options, Section, group
from core.options.values import Form, bad_value, is_bool, read_bool
from frontends.http.options import HttpOptions
from frontends.shared.secure import is_local

AUTO = "auto"

_http = group("HTTP")


def _read(flag: str, text: str) -> bool | str:
    if text.lower() == AUTO:
        return AUTO
    if not is_bool(text):
        raise bad_value(flag, f"expected true, false or {AUTO}, got: {text}")
    return read_bool(flag, text)


@dataclass(kw_only=True)
class ConsoleOptions(Section):
    """The flag of the console."""

    # fmt: off
    allow_console: bool | str = _http(Form("true|false|auto", _read), False,
        "Serve the page /console on the HTTP port: true, false, or auto, which serves it if only this "
        "machine can reach the port. `core serve` uses auto (docs/operate/console.md).")
    # fmt: on


def is_on(options: Options) -> bool:
    """Return whether the server serves the console."""
    allowed = ConsoleOptions.of(options).allow_console
    http = HttpOptions.of(options)
    if not allowed or not http.allow_http:
        return False
    return allowed != AUTO or is_local(http.http_address)
