"""The format of encrypted files, and their keys.

    "core encrypted 1\\n" · salt (16 bytes) · check (16) · chunk size (4, big endian) · chunks

HKDF with SHA-256 derives the key of the file and the check from a key of 32 bytes and the salt. The check
distinguishes a wrong key from a changed file. A chunk is `chunk size` bytes of the file, encrypted with
AES-256-GCM, and its tag of 16 bytes. Its nonce is its number (11 bytes, big endian, from 0) and 1 byte: 1 for
the last chunk, else 0. The additional authenticated data is everything before the chunks. The last chunk may
be shorter; it is empty only for an empty file. So no chunk can be changed, removed, moved or added.

The format does not protect the name and the location of the file. The agent "checksum" does.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from core.errors import invalid

SUFFIX = ".encrypted"
MAGIC = b"core encrypted 1\n"
KEY_ENVIRONMENT = "CORE_MODEL_KEY"

_KEY_BYTES = 32
_SALT_BYTES = 16
_CHECK_BYTES = 16
_TAG_BYTES = 16
_HEADER_BYTES = len(MAGIC) + _SALT_BYTES + _CHECK_BYTES + 4
_CHUNK_BYTES = 1 << 20
_LARGEST_CHUNK_BYTES = 1 << 26  # limit for the chunk size in a header
_INFO = b"core encrypted model file, version 1"


def new_key() -> str:
    """Return a new random key of 32 bytes as base64 text."""
    return base64.urlsafe_b64encode(os.urandom(_KEY_BYTES)).decode()


def keys_of(environment: str | None, file: str | None) -> list[bytes]:
    """Return the keys in a file, or if `file` is None, in an environment variable.

    There is at least one; while a key is replaced, there are several, with spaces or commas between. Raises
    CoreError(INVALID) for no key or an invalid one, which names the variable or file, but not its content.
    """
    if file is not None:
        place = f"key file '{file}'"
        try:
            text = Path(file).read_text("ascii")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise invalid(f"{place} cannot be read: {reason}") from error
    else:
        place = f"environment variable '{environment}'"
        text = os.environ.get(environment or "", "")
    keys = [_key(word, place) for word in re.split(r"[\s,]+", text) if word]
    if not keys:
        raise invalid(f"there is no key in {place}; core encrypt --new-key makes one")
    return keys


def _key(word: str, place: str) -> bytes:
    try:
        key = base64.b64decode(word.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise invalid(f"{place} holds no key: a key is {_KEY_BYTES} bytes in base64, 44 characters")
    return key


def encrypt(source: BinaryIO, target: BinaryIO, key: bytes) -> None:
    """Read `source` to its end, and write it to `target` encrypted, in the format of this module."""
    salt = os.urandom(_SALT_BYTES)
    cipher, check = _derived(key, salt)
    header = MAGIC + salt + check + _CHUNK_BYTES.to_bytes(4, "big")
    target.write(header)
    number, chunk = 0, source.read(_CHUNK_BYTES)
    while True:
        following = source.read(_CHUNK_BYTES)
        target.write(cipher.encrypt(_nonce(number, last=not following), chunk, header))
        if not following:
            return
        number, chunk = number + 1, following


def decrypt(source: BinaryIO, target: BinaryIO, keys: Sequence[bytes]) -> None:
    """Read the encrypted `source` to its end, and write its content to `target`.

    keys   one of them must be the key of the file
    Raises CoreError(INVALID) for a file of another format, a wrong key, and a changed file. After an error,
    `target` must not be used: it may have a part of the content.
    """
    header = source.read(_HEADER_BYTES)
    size = int.from_bytes(header[-4:], "big")
    if not header.startswith(MAGIC) or len(header) < _HEADER_BYTES:
        raise invalid("it is no file that core encrypt has made")
    cipher = _cipher_for(header, keys)
    if not 0 < size <= _LARGEST_CHUNK_BYTES:
        raise _changed()
    number, chunk = 0, source.read(size + _TAG_BYTES)
    while True:
        following = source.read(size + _TAG_BYTES)
        try:
            plain = cipher.decrypt(_nonce(number, last=not following), chunk, header)
        except (InvalidTag, ValueError) as error:
            raise _changed() from error
        target.write(plain)
        if not following:
            return
        number, chunk = number + 1, following


def _cipher_for(header: bytes, keys: Iterable[bytes]) -> AESGCM:
    salt = header[len(MAGIC) : len(MAGIC) + _SALT_BYTES]
    for key in keys:
        cipher, check = _derived(key, salt)
        if check == header[-4 - _CHECK_BYTES : -4]:
            return cipher
    raise invalid("it was encrypted with another key")


def _changed() -> Exception:
    return invalid("it was changed after it had been encrypted, or is not complete")


def _derived(key: bytes, salt: bytes) -> tuple[AESGCM, bytes]:
    size = _KEY_BYTES + _CHECK_BYTES
    derived = HKDF(algorithm=SHA256(), length=size, salt=salt, info=_INFO).derive(key)
    return AESGCM(derived[:_KEY_BYTES]), derived[_KEY_BYTES:]


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])
