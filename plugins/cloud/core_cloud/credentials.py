"""Credentials: the keys of a place, from Triton's environment variables or Triton's file.

    TRITON_CLOUD_CREDENTIAL_PATH=file ─► { "s3": { "prefix of a URL": { key_id, secret_key, … } } }

With the file, the other variables are ignored. Of several prefixes of the URL the longest one applies. Worker
threads. Nothing is cached: each call reads the current file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from core.errors import CoreError, invalid
from core_cloud.address import Place

FILE = "TRITON_CLOUD_CREDENTIAL_PATH"

# Member of the file → variable of the environment.
_VARIABLES = {
    "s3": {
        "key_id": "AWS_ACCESS_KEY_ID",
        "secret_key": "AWS_SECRET_ACCESS_KEY",
        "session_token": "AWS_SESSION_TOKEN",
        "region": "AWS_DEFAULT_REGION",
        "profile": "AWS_PROFILE",
        "addressing_style": "AWS_S3_ADDRESSING_STYLE",
    },
    "gs": {"path": "GOOGLE_APPLICATION_CREDENTIALS"},
    "as": {
        "account_str": "AZURE_STORAGE_ACCOUNT",
        "account_key": "AZURE_STORAGE_KEY",
        "auth_type": "AZURE_STORAGE_AUTH_TYPE",
        "client_id": "AZURE_STORAGE_CLIENT_ID",
    },
}

Credentials = Mapping[str, str]
"""Values by the names in the file; absent ones are omitted."""


def credentials_of(place: Place, environment: Mapping[str, str] = os.environ) -> Credentials:
    """Return the credentials for a place; {} if there are none, or if fsspec finds them itself.

    They come from the file, if a variable names one, else from the other variables. Raises CoreError(INVALID)
    if the file cannot be read, is invalid, or has no entry for the URL.
    """
    names = _VARIABLES.get(place.scheme)
    if names is None:  # a store that only fsspec supports: fsspec finds the credentials
        return {}
    if path := environment.get(FILE):
        return _of_file(place, path, names)
    return {name: text for name, each in names.items() if (text := environment.get(each))}


def source_of(place: Place, environment: Mapping[str, str] = os.environ) -> str:
    """Return where `credentials_of` looks for the credentials of a place, as words for an error text."""
    if place.scheme not in _VARIABLES:
        return f"what fsspec reads for {place.scheme}://"
    if path := environment.get(FILE):
        return f"the entry \"{place.scheme}\" of the file '{path}' ({FILE})"
    return ", ".join(_VARIABLES[place.scheme].values())


def _of_file(place: Place, path: str, names: Mapping[str, str]) -> Credentials:
    entries = _read(path).get(place.scheme, {})
    if not isinstance(entries, dict):
        raise _wrong(path, f'"{place.scheme}" is no object of prefixes')
    fitting = [prefix for prefix in entries if place.url.startswith(prefix)]
    if not fitting:
        found = ", ".join(f'"{prefix}"' for prefix in entries) or "nothing"
        raise _wrong(
            path,
            f'"{place.scheme}" has no prefix of \'{place.shown}\' (it has {found}; the prefix "" fits '
            "every URL)",
        )
    entry = entries[max(fitting, key=len)]
    if place.scheme == "gs":
        entry = {"path": entry}
    if not isinstance(entry, dict) or not all(isinstance(text, str) for text in entry.values()):
        raise _wrong(path, f'an entry of "{place.scheme}" is not made of texts')
    if unknown := sorted(set(entry) - set(names)):
        raise _wrong(
            path, f'"{place.scheme}" has no member "{unknown[0]}"; it has {", ".join(names)}'
        )
    return {name: text for name, text in entry.items() if text}


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            content = json.load(file)
    except OSError as error:
        raise _wrong(path, f"it cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise _wrong(path, f"it is no JSON: {error}") from error
    if not isinstance(content, dict):
        raise _wrong(path, "it is no JSON object")
    return content


def _wrong(path: str, text: str) -> CoreError:
    return invalid(f"credentials in '{path}' ({FILE}): {text}")
