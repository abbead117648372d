"""aiohttp's server, without the time that its client takes: import `web` from here.

`import aiohttp` also makes the TLS contexts of its client, and each reads all certificates of the
system: some 0.15 s of CPU time, for a server that never asks anybody. Here they are read when a
context is first used, so that a model that does use the client finds it as it should be.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_READERS = ("load_default_certs", "set_default_verify_paths")
_USERS = ("wrap_bio", "wrap_socket")


@contextmanager
def _certificates_when_used() -> Iterator[None]:
    """Contexts made in here read the system's certificates when they first wrap a connection."""
    originals = {name: ssl.SSLContext.__dict__.get(name) for name in _READERS}
    for name in _READERS:
        setattr(ssl.SSLContext, name, _postponed(getattr(ssl.SSLContext, name)))
    try:
        yield
    finally:
        for name, original in originals.items():
            if original is None:
                delattr(ssl.SSLContext, name)  # inherited
            else:
                setattr(ssl.SSLContext, name, original)


def _postponed(read: Callable[..., None]) -> Callable[..., None]:
    def postpone(context: ssl.SSLContext, *args: Any, **kwargs: Any) -> None:
        for name in _USERS:
            setattr(
                context, name, _reading_first(context, name, lambda: read(context, *args, **kwargs))
            )

    return postpone


def _reading_first(context: ssl.SSLContext, name: str, read: Callable[[], None]) -> Any:
    """The method `name` of one context, for its first call."""

    def wrap(*args: Any, **kwargs: Any) -> Any:
        for each in _USERS:
            vars(context).pop(each, None)
        read()
        return getattr(context, name)(*args, **kwargs)

    return wrap


with _certificates_when_used():
    from aiohttp import HttpVersion11, web

__all__ = ["HttpVersion11", "web"]
