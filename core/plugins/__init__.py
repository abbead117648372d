"""Plugins: backends, formats, process hosts, frontends and hooks of distributions, by entry point.

At startup only names are read; a module is imported on first use. A broken plugin affects only its users.
"""

from core.plugins.backends import backend, can_isolate, imported, is_there, isolate
from core.plugins.calls import ask, ask_each, flags, hooks, listens, load_hooks, tell, teller_of
from core.plugins.extras import extras, install_hint
from core.plugins.formats import formats
from core.plugins.installed import (
    Plugin,
    aliases,
    api,
    available_backends,
    available_commands,
    frontends,
    installed,
    look_again,
    with_hooks,
)
from core.plugins.missing import hint
from core.plugins.process_host import HostedBackend, ProcessHost, file_of, isolated_by

__all__ = [
    "HostedBackend",
    "Plugin",
    "ProcessHost",
    "aliases",
    "api",
    "ask",
    "ask_each",
    "available_backends",
    "available_commands",
    "backend",
    "can_isolate",
    "extras",
    "file_of",
    "flags",
    "formats",
    "frontends",
    "hint",
    "hooks",
    "imported",
    "install_hint",
    "installed",
    "is_there",
    "isolate",
    "isolated_by",
    "listens",
    "load_hooks",
    "look_again",
    "tell",
    "teller_of",
    "with_hooks",
]
