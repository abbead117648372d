"""Open the file systems of fsspec: place and credentials ─► [open_files] ─► file system.

Worker threads. These functions import fsspec and the package of the store, which may take seconds. They send
no request to the store; for Google they request a token. The file systems cache no listings and, where they
allow it, do not retry: Store retries.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
from typing import Any

from core.errors import CoreError, invalid, unsupported
from core_cloud.address import Place
from core_cloud.credentials import Credentials

CONNECT_S = 5  # time limit for a connection
READ_S = 30  # time limit without a byte of a response

_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"} | dict.fromkeys(
    ("as", "az", "abfs", "abfss", "adl"), "azure"
)
_GOOGLE_SCOPE = "https://www.googleapis.com/auth/devstorage.read_only"
_FRESH = {"use_listings_cache": False, "skip_instance_cache": True}


def open_files(place: Place, credentials: Credentials, *, fresh: bool = False) -> tuple[Any, str]:
    """Return the file system of a place (an fsspec.AbstractFileSystem) and the path of the place in it.

    fresh   True: create a new one for s3, as the store has refused the credentials of the cached one; others
            are always new, except those that only fsspec knows
    Raises CoreError(UNSUPPORTED) if a package is missing or no package knows the URL, and
    CoreError(INVALID) for unusable credentials.
    """
    _import(place, "fsspec")
    if place.scheme == "s3":
        return _s3(place, credentials, fresh=fresh), place.root
    if place.scheme == "gs":
        return _gcs(place, credentials), place.root
    if place.scheme == "as":
        return _azure(place, credentials), place.root
    return _any(place)


def anonymous(place: Place, credentials: Credentials) -> Any | None:
    """Return a file system that uses no credentials, for S3; None for other stores.

    `open_files` already opens those without credentials if there are none.
    """
    return _s3(place, credentials, anon=True) if place.scheme == "s3" else None


def _s3(place: Place, credentials: Credentials, *, anon: bool = False, fresh: bool = False) -> Any:
    s3fs = _import(place, "s3fs")
    region = credentials.get("region")
    files = s3fs.S3FileSystem(
        **({} if anon else _s3_keys(credentials)),
        anon=anon,
        endpoint_url=place.endpoint or None,
        client_kwargs={"region_name": region} if region else {},
        config_kwargs={
            "connect_timeout": CONNECT_S,
            "read_timeout": READ_S,
            "retries": {"total_max_attempts": 1},
            "s3": {"addressing_style": _addressing(place, credentials)},
        },
        use_listings_cache=False,
        # botocore takes a second to read its service description: repositories with the same keys share it.
        skip_instance_cache=fresh,
    )
    files.retries = 1
    return files


def _addressing(place: Place, credentials: Credentials) -> str:
    """Return where a request names the bucket: in its path, in its host name, or as botocore chooses (auto).

    The default is path, as in Triton: servers other than Amazon's rarely have a host name for each bucket.
    Raises CoreError(INVALID) for another style.
    """
    style = credentials.get("addressing_style") or "path"
    if style not in ("path", "virtual", "auto"):
        raise invalid(
            f"model repository '{place.shown}': '{style}' is no addressing style; AWS_S3_ADDRESSING_STYLE "
            "(in a file of credentials addressing_style) is path, virtual or auto"
        )
    return style


def _s3_keys(credentials: Credentials) -> dict[str, Any]:
    """Return the arguments of S3FileSystem for credentials: the keys if there are two, else the profile.

    Without both, {}: botocore then searches for credentials itself.
    """
    key, secret = credentials.get("key_id"), credentials.get("secret_key")
    if key and secret:
        return {"key": key, "secret": secret, "token": credentials.get("session_token")}
    profile = credentials.get("profile")
    return {"profile": profile} if profile else {}


def _gcs(place: Place, credentials: Credentials) -> Any:
    _import(place, "gcsfs")
    _quiet("gcsfs")
    # Not gcsfs.GCSFileSystem: it first requests the type of the bucket over gRPC.
    core = importlib.import_module("gcsfs.core")
    aiohttp = importlib.import_module("aiohttp")
    # None: gcsfs searches like Google's libraries, and uses no credentials if it finds none.
    token: Any = None
    if path := credentials.get("path"):
        token = _google_credentials(place, path)
    elif os.environ.get("STORAGE_EMULATOR_HOST"):
        token = "anon"
    files = core.GCSFileSystem(
        token=token,
        access="read_only",
        requests_timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_S, sock_read=READ_S
        ),
        **_FRESH,
    )
    files.credentials.maybe_refresh()  # without it gcsfs retries refused credentials for half a minute
    return files


def _google_credentials(place: Place, path: str) -> Any:
    """Return the credentials in the file at `path`, if it is of a service account or a user.

    For another type return "google_default" if GOOGLE_APPLICATION_CREDENTIALS names the file: Google's
    libraries find it then. Raises CoreError(INVALID) if not, and for a file that cannot be read.
    """
    try:
        with open(path, "rb") as file:
            kind = json.load(file).get("type")
        if kind == "service_account":
            account = importlib.import_module("google.oauth2.service_account")
            return account.Credentials.from_service_account_file(path, scopes=[_GOOGLE_SCOPE])
        if kind == "authorized_user":
            user = importlib.import_module("google.oauth2.credentials")
            return user.Credentials.from_authorized_user_file(path)
        if path == os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
            return "google_default"
        raise ValueError(f"its type is {kind!r}, and not service_account or authorized_user")
    except (OSError, ValueError, AttributeError) as error:
        raise invalid(
            f"model repository '{place.shown}': the credentials in '{path}' "
            f"(GOOGLE_APPLICATION_CREDENTIALS) cannot be used: {error}"
        ) from error


def _azure(place: Place, credentials: Credentials) -> Any:
    adlfs = _import(place, "adlfs")
    blob = importlib.import_module("azure.storage.blob.aio")
    account = credentials.get("account_str") or place.account
    key = credentials.get("account_key")
    token = _azure_token(place, credentials)
    text = os.environ.get("AZURE_STORAGE_CONNECTION_STRING") if not (key or token) else None
    how = {"retry_total": 0, "connection_timeout": CONNECT_S, "read_timeout": READ_S}
    _quiet("azure")

    class Files(adlfs.AzureBlobFileSystem):  # type: ignore[misc,name-defined]
        """File system of adlfs with a client that does not retry, for any endpoint."""

        def do_connect(self) -> None:
            if text and not place.endpoint:
                self.service_client = blob.BlobServiceClient.from_connection_string(text, **how)
                return
            url = f"https://{account}.blob.core.windows.net"
            if place.endpoint:
                url = f"{place.endpoint}/{place.account}"
            shared = {"account_name": account, "account_key": key} if key else None
            shown = token or shared or self.sas_token or self.credential
            self.service_client = blob.BlobServiceClient(url, shown, **how)

    # anon: adlfs must not search for credentials, except in Azure's variables.
    files = Files(
        account_name=account,
        account_key=key,
        credential=token,
        connection_string=text,
        anon=True,
        max_concurrency=4,
        **_FRESH,
    )
    files.anon = not (token or key or text or files.sas_token or files.credential)
    return files


def _azure_token(place: Place, credentials: Credentials) -> Any | None:
    """Return the object of azure.identity that requests tokens; None if auth_type is key or not set.

    Raises CoreError(INVALID) for an unknown auth_type.
    """
    kind = credentials.get("auth_type") or "key"
    if kind not in ("key", "managed_identity", "default"):
        raise invalid(
            f"model repository '{place.shown}': '{kind}' is no way to authenticate; AZURE_STORAGE_AUTH_TYPE "
            "(in a file of credentials auth_type) is key, managed_identity or default"
        )
    if kind == "key":
        return None
    identity = importlib.import_module("azure.identity.aio")
    client = credentials.get("client_id")
    if kind == "managed_identity":
        return identity.ManagedIdentityCredential(**({"client_id": client} if client else {}))
    return identity.DefaultAzureCredential()


def _any(place: Place) -> tuple[Any, str]:
    core = importlib.import_module("fsspec.core")
    try:
        files, root = core.url_to_fs(place.url)
    except ImportError as error:
        raise _missing(place, error) from error
    except ValueError as error:
        raise unsupported(
            f"no repository can be opened at '{place.shown}': known are folders, s3://, gs:// and as://, "
            f"what a plugin with the hook core_open_repository knows, and what fsspec knows ({error})"
        ) from error
    return files, root.rstrip("/")


def _import(place: Place, name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise _missing(place, error) from error


def _missing(place: Place, error: ImportError) -> CoreError:
    extra = _EXTRAS.get(place.scheme)
    hint = "fsspec, and what it names"
    if extra:  # the folder that `make wheels` makes: no index has core-cloud
        hint = f"--find-links wheels 'core-cloud[{extra}]'"
    return unsupported(
        f"model repository '{place.shown}' needs a package that is not here ({error}); "
        f"try: pip install {hint}"
    )


def _quiet(name: str) -> None:
    """Add a handler that does nothing to a library's logger, unless it has one.

    So the errors that the library logs, and raises as well, do not appear on stderr.
    """
    logger = logging.getLogger(name)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
