"""`core encrypt`: encrypt a model's files, for the repository agent decrypt."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

summary = "encrypt a model's files, for the repository agent decrypt"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, nargs="?", metavar="MODEL_DIR", help="of one model")
    parser.add_argument("copy", type=Path, nargs="?", metavar="COPY_DIR", help="new folder")
    key = parser.add_mutually_exclusive_group()
    key.add_argument("--key-file", type=Path, metavar="FILE", help="that holds the key")
    key.add_argument("--key-env", metavar="NAME", help="of the variable; else CORE_MODEL_KEY")
    key.add_argument("--new-key", type=Path, metavar="FILE", help="write a new key, and no more")


def run(namespace: argparse.Namespace) -> int:
    """Write the new key, or the encrypted copy; print a message and return the exit status.

    It is 0, 2 if arguments are missing, or 1 for an OSError. Raises as `write_key` and `encrypt_model`.
    """
    from core_encryption.encrypt import encrypt_model, write_key  # needs cryptography

    if namespace.new_key is None and (namespace.folder is None or namespace.copy is None):
        print("error: give MODEL_DIR and COPY_DIR, or --new-key FILE", file=sys.stderr)
        return 2
    try:
        if namespace.new_key is not None:
            done = write_key(namespace.new_key)
        else:
            place = namespace.key_env, namespace.key_file
            done = encrypt_model(namespace.folder, namespace.copy, *place)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(done)
    return 0
