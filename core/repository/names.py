"""Names and keys of models: valid names, and keys that distinguish models with the same name.

Names come from clients and become paths. With --model-namespacing several repositories may hold a model of
one name; then keys identify models.
"""

from __future__ import annotations

import re

from core.errors import invalid

LONGEST_NAME = 255  # bytes in UTF-8
# A lone surrogate stands for bytes that are not UTF-8.
_NEVER_IN_NAMES = re.compile("[/\0\ud800-\udfff]")


class Key(str):
    """`<namespace>::<name>`, also in logs and tables: identifies one of several models with the same name.

    namespace   location of its repository; "" for a model whose files came with a load request
    name        in client requests
    """

    namespace: str
    name: str

    def __new__(cls, namespace: str, name: str) -> Key:
        key = super().__new__(cls, f"{namespace}::{name}")
        key.namespace, key.name = namespace, name
        return key

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # for copies
        return self.namespace, self.name


def key_of(namespace: str | None, name: str) -> str:
    """Return the key of a model: its name, if there are no namespaces."""
    return name if namespace is None else Key(namespace, name)


def name_of(key: str) -> str:
    """Return the name of the model with that key."""
    return key.name if isinstance(key, Key) else key


def namespace_of(key: str) -> str | None:
    """Return the namespace in a key; None without namespaces."""
    return key.namespace if isinstance(key, Key) else None


def checked_name(name: str) -> str:
    """Return the name without blanks around it. Raises CoreError(INVALID) if empty, too long or a path."""
    name = name.strip()
    if not name:
        raise invalid("Model name cannot be empty. Please enter a valid name to deploy.")
    if len(name.encode(errors="replace")) > LONGEST_NAME:
        raise invalid(
            f"invalid model name '{name[:40]}...', a name has at most {LONGEST_NAME} bytes, as a "
            "folder's has"
        )
    if ".." in name or not is_folder_name(name):
        raise invalid(
            f"invalid model name '{name}', model name must not contain path traversal characters"
        )
    return name


def is_folder_name(name: str) -> bool:
    """Return whether the repository's folder joined with the name is a path directly below that folder.

    Also False for a name that is no valid text: a file system may hold one, but no client can send it.
    """
    return name not in ("", ".", "..") and _NEVER_IN_NAMES.search(name) is None
