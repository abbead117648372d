"""The form of encrypted files, and the keys for them.

    "core encrypted 1\\n" · salt (16 bytes) · check (16) · chunk size (4, big endian) · chunks

From a key of 32 bytes and the salt, HKDF with SHA-256 makes the key of this file and the check, by which a
wrong key is told from a changed file. A chunk is `chunk size` bytes of the file, encrypted with AES-256-GCM,
and its tag of 16 bytes. Its nonce is its number (11 bytes, big endian, from 0) and 1 byte that is 1 for the
last chunk and else 0; what is authenticated beside it is all that stands before the chunks. The last chunk
may be shorter, and is empty for an empty file only. So no chunk can be changed, left out, moved or added.

What is not told by this: which name and which place the file had. The agent "checksum" tells that.
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
_LARGEST_CHUNK_BYTES = 1 << 26  # what a header may make us read at once
_INFO = b"core encrypted model file, version 1"


def new_key() -> str:
    """A random key as text."""
    return base64.urlsafe_b64encode(os.urandom(_KEY_BYTES)).decode()


def keys_of(environment: str | None, file: str | None) -> list[bytes]:
    """The keys in a variable of the environment, or in a file: several are there while one replaces another.

    Raises CoreError(INVALID) that names the place, and shows nothing of what is in it.
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
        raise invalid(f"there is no key in {place}; python -m core encrypt --new-key makes one")
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
    """Write what `source` holds to `target`, encrypted."""
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
    """Write what `encrypt` was given to `target`. On an error, what was written must not be used.

    Raises CoreError(INVALID) for what is no encrypted file, a wrong key, and a file that was changed.
    """
    header = source.read(_HEADER_BYTES)
    size = int.from_bytes(header[-4:], "big")
    if not header.startswith(MAGIC) or len(header) < _HEADER_BYTES:
        raise invalid("it is no file that python -m core encrypt has made")
    cipher = _cipher_for(header, keys)
    if not 0 < size <= _LARGEST_CHUNK_BYTES:
        raise _changed()
    number, chunk = 0, source.read(size + _TAG_BYTES)
    while True:
        following = source.read(size + _TAG_BYTES)
        target.write(_opened(cipher, _nonce(number, last=not following), chunk, header))
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


def _opened(cipher: AESGCM, nonce: bytes, chunk: bytes, header: bytes) -> bytes:
    try:
        return cipher.decrypt(nonce, chunk, header)
    except (InvalidTag, ValueError) as error:
        raise _changed() from error


def _changed() -> Exception:
    return invalid("it was changed after it had been encrypted, or is not complete")


def _derived(key: bytes, salt: bytes) -> tuple[AESGCM, bytes]:
    size = _KEY_BYTES + _CHECK_BYTES
    derived = HKDF(algorithm=SHA256(), length=size, salt=salt, info=_INFO).derive(key)
    return AESGCM(derived[:_KEY_BYTES]), derived[_KEY_BYTES:]


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])
