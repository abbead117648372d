"""What other distributions bring: backends, frontends and hooks, found by entry point.

    installed ─► calls (of hooks) ─► backends

At the start only names are read; a module is imported when somebody asks for what it brings. A
broken plugin fails those who ask for it, and nobody else.
"""

from core.plugins.backends import apart, backend, imported, is_there
from core.plugins.calls import (
    added_flags,
    ask,
    ask_each,
    hooks,
    listens,
    load_hooks,
    tell,
    teller_of,
)
from core.plugins.installed import (
    Plugin,
    aliases,
    available_backends,
    available_commands,
    frontends,
    look_again,
    with_hooks,
    worker_tables,
)
from core.plugins.missing import hint

__all__ = [
    "Plugin",
    "added_flags",
    "aliases",
    "apart",
    "ask",
    "ask_each",
    "available_backends",
    "available_commands",
    "backend",
    "frontends",
    "hint",
    "hooks",
    "imported",
    "is_there",
    "listens",
    "load_hooks",
    "look_again",
    "tell",
    "teller_of",
    "with_hooks",
    "worker_tables",
]
