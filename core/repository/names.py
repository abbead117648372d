"""Which names a model may have, and how models of one name are told apart.

Names come from clients, and become paths. With --model-namespacing several repositories may hold a model of
one name; then models are known by keys.
"""

from __future__ import annotations

from core.errors import invalid

LONGEST_NAME = 255  # bytes in UTF-8


class Key(str):
    """`<namespace>::<name>`, as logs and tables show it: a model among others of its name.

    namespace   location of its repository; "" for a model whose files came with a load request
    name        as clients say it
    """

    namespace: str
    name: str

    def __new__(cls, namespace: str, name: str) -> Key:
        key = super().__new__(cls, f"{namespace}::{name}")
        key.namespace, key.name = namespace, name
        return key

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # what a copy is made of
        return self.namespace, self.name


def key_of(namespace: str | None, name: str) -> str:
    """What a model is known by: its name, if there are no namespaces."""
    return name if namespace is None else Key(namespace, name)


def name_of(key: str) -> str:
    """The name of the model that is known by a key."""
    return key.name if isinstance(key, Key) else key


def namespace_of(key: str) -> str | None:
    """The namespace in a key, None if there are no namespaces."""
    return key.namespace if isinstance(key, Key) else None


def checked_name(name: str) -> str:
    """The name without blanks around it. Raises CoreError(INVALID) for what names no folder."""
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
    """Whether a path made of the name and its repository's folder stays directly below that folder.

    False too for a name that is no text (a file system may hold such), since no client could say it.
    """
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name and _is_text(name)


def _is_text(name: str) -> bool:
    """Whether it has no half of a surrogate pair, which stands for bytes that are no UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
