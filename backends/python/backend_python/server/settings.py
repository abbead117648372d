"""Settings of the backend: --backend-config=python,NAME=VALUE."""

from __future__ import annotations

from core.errors import invalid

SETTINGS = (
    "shm-default-byte-size",
    "shm-growth-byte-size",
    "stub-timeout-seconds",
    "execute-timeout-seconds",
    "check-outputs",
)

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")


class Settings:
    """The parsed values of --backend-config=python,…"""

    def __init__(self, given: dict[str, str]):
        first, growth, timeout, execute_timeout, check_outputs = SETTINGS
        self.arena_bytes = _number(given, first, 1 << 20)
        self.growth_bytes = _number(given, growth, 1 << 20)
        self.timeout_s = _number(given, timeout, 30)
        self.execute_timeout_s = _number(given, execute_timeout, 0)  # 0: none
        text = given.get(check_outputs, "")
        self.check_outputs = switch(
            text or "true", f"--backend-config=python,{check_outputs}={text}"
        )


def _number(given: dict[str, str], name: str, default: int) -> int:
    text = given.get(name, "")
    if not text:
        return default
    return positive(text, f"--backend-config=python,{name}={text}")


def positive(text: str, where: str) -> int:
    """Return a number above 0. Raise CoreError(INVALID) otherwise; its message begins with `where`."""
    try:
        value = int(text)
        if value <= 0:
            raise ValueError
    except ValueError:
        raise invalid(f"{where}: expected a positive number") from None
    return value


def switch(text: str, where: str) -> bool:
    """Parse true or false; also yes and no, on and off, 1 and 0.

    Raise CoreError(INVALID) for other text; its message begins with `where`.
    """
    word = text.lower()
    if word not in _TRUE and word not in _FALSE:
        raise invalid(f"{where}: expected true or false")
    return word in _TRUE
