"""A store over a file system in memory, which fails on command of a test."""

import subprocess
import sys
import threading

import fsspec
import pytest
from core_cloud.address import place_of
from core_cloud.failure import Failure, Incomplete, StoreError
from core_cloud.files import RemoteFile, file_of
from core_cloud.repository import open_cloud
from core_cloud.store import ATTEMPTS, Store

from core.errors import CoreError, Kind


class Slow:
    """Records the pauses of a store instead of waiting."""

    def __init__(self):
        self.pauses = []

    def __call__(self, seconds):
        self.pauses.append(seconds)


@pytest.fixture
def memory(monkeypatch):
    files = fsspec.filesystem("memory")
    files.store.clear()
    files.pseudo_dirs[:] = [""]
    files.pipe("/models/m/config.pbtxt", b"")
    files.pipe("/models/m/1/x", b"abc")
    yield files
    files.store.clear()


@pytest.fixture
def pauses():
    return Slow()


@pytest.fixture
def store(memory, pauses):
    return Store(place_of("memory://models"), pause=pauses)


def failing(monkeypatch, memory, method, *errors):
    """Let a method of the file system raise these errors, one in each call, and then work.

    Return a list, to which each call of the method adds its arguments.
    """
    waiting, inner, calls = list(errors), getattr(memory, method), []

    def call(*args, **kwargs):
        calls.append(args)
        if waiting:
            raise waiting.pop(0)
        return inner(*args, **kwargs)

    monkeypatch.setattr(type(memory), method, lambda self, *args, **how: call(*args, **how))
    return calls


def test_folders_are_named_and_files_listed(store):
    assert store.names() == {"m"}
    assert set(store.tree().files) == {"m/config.pbtxt", "m/1/x"}
    assert set(store.tree("m").files) == {"config.pbtxt", "1/x"}
    assert store.tree("other").files == {}


def test_a_file_is_fetched(store, tmp_path):
    store.fetch(store.tree("m").files["1/x"], tmp_path / "x")

    assert (tmp_path / "x").read_bytes() == b"abc"


def test_transient_failures_are_retried_after_growing_pauses(store, memory, monkeypatch, pauses):
    failing(monkeypatch, memory, "find", ConnectionError("1"), TimeoutError("2"))

    assert len(store.tree().files) == 2

    first, second = pauses.pauses
    assert 0 < first < second


def test_attempts_are_bounded(store, memory, monkeypatch, pauses):
    calls = failing(monkeypatch, memory, "find", *[ConnectionError("away")] * 100)

    with pytest.raises(StoreError) as refused:
        store.tree()

    assert len(calls) == ATTEMPTS
    assert len(pauses.pauses) == ATTEMPTS - 1
    assert f"({ATTEMPTS} attempts): ConnectionError: away" in str(refused.value)
    assert refused.value.failure is Failure.TRANSIENT


def test_lasting_failures_are_not_retried(store, memory, monkeypatch, pauses):
    calls = failing(monkeypatch, memory, "find", PermissionError("no"))

    with pytest.raises(StoreError, match="PermissionError: no"):
        store.tree()

    assert len(calls) == 1
    assert pauses.pauses == []


def test_after_the_end_nothing_is_tried_again(memory, monkeypatch):
    ended = threading.Event()
    ended.set()
    calls = failing(monkeypatch, memory, "find", *[ConnectionError("away")] * 9)

    with pytest.raises(StoreError):
        Store(place_of("memory://models"), ended).tree()

    assert len(calls) == 1


def test_a_file_of_another_size_than_listed_is_refused(store, memory, tmp_path):
    file = store.tree("m").files["1/x"]
    memory.pipe("/models/m/1/x", b"ab")

    with pytest.raises(StoreError, match="2 bytes came, and the listing says 3"):
        store.fetch(file, tmp_path / "x")


class Encrypting:
    """An object of S3 with encryption settings; counts the requests for them."""

    def __init__(self, **head):
        self.head = head

    def call_s3(self, method, **which):
        assert (method, which) == ("head_object", {"Bucket": "bucket", "Key": "m/x"})
        return self.head

    def info(self, key):
        return {"ETag": '"2-1"', "LastModified": "now"}


@pytest.mark.parametrize(("tag", "is_there"), [('"2-1"', True), ('"1-1"', False)])
def test_an_object_without_a_digest_must_match_the_listing_after_the_fetch(tmp_path, tag, is_there):
    """Of what was uploaded to S3 in parts the ETag is no MD5, and another content may be as large."""
    file = file_of("bucket/m/x", {"size": 3, "ETag": tag, "LastModified": "then"})
    (tmp_path / "x").write_text("abc")
    store = Store(place_of("s3://bucket"))

    if is_there:
        store._check(Encrypting(), file, tmp_path / "x")
    else:
        with pytest.raises(Incomplete, match="has changed since it was listed"):
            store._check(Encrypting(), file, tmp_path / "x")


@pytest.mark.parametrize(
    ("url", "head", "counts"),
    [
        ("s3://bucket", {}, True),
        ("s3://bucket", {"ServerSideEncryption": "AES256"}, True),
        ("s3://bucket", {"ServerSideEncryption": "aws:kms"}, False),
        ("s3://bucket", {"SSECustomerAlgorithm": "AES256"}, False),
        ("s3://host:1/bucket", {}, True),
        ("s3://host:1/bucket", {"ServerSideEncryption": "AES256"}, False),
    ],
)
def test_an_etag_counts_as_md5_where_it_is_one(tmp_path, url, head, counts):
    file = RemoteFile("bucket/m/x", 3, "", "", md5="0" * 32, sure=False)
    (tmp_path / "x").write_text("abc")
    store = Store(place_of(url))

    if counts:
        with pytest.raises(Incomplete, match="MD5"):
            store._check(Encrypting(**head), file, tmp_path / "x")
    else:
        store._check(Encrypting(**head), file, tmp_path / "x")


def test_the_end_ends_a_transfer(memory, tmp_path):
    ended = threading.Event()
    store = Store(place_of("memory://models"), ended)
    file = store.tree("m").files["1/x"]
    ended.set()

    with pytest.raises(Exception, match="the server ends"):
        store.fetch(file, tmp_path / "x")


def test_a_path_without_objects_is_no_place(memory, pauses):
    with pytest.raises(StoreError, match="FileNotFoundError: /nothing"):
        Store(place_of("memory://nothing"), pause=pauses).names()


# Missing packages ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "package", "extra"),
    [
        ("s3://bucket", "s3fs", "--find-links wheels 'core-cloud[s3]'"),
        ("gs://bucket", "gcsfs", "--find-links wheels 'core-cloud[gcs]'"),
        ("as://account/container", "adlfs", "--find-links wheels 'core-cloud[azure]'"),
        ("s3://bucket", "fsspec", "--find-links wheels 'core-cloud[s3]'"),
        ("memory://models", "fsspec", "fsspec"),
    ],
)
def test_a_package_that_is_missing_is_named_with_the_command(monkeypatch, url, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)

    with pytest.raises(CoreError) as refused:
        open_cloud(url).check()

    assert refused.value.kind is Kind.UNSUPPORTED
    assert f"pip install {extra}" in refused.value.message


def test_a_url_of_an_unknown_scheme_is_refused():
    with pytest.raises(CoreError, match="no repository can be opened at 'tape://deck'"):
        open_cloud("tape://deck").check()


@pytest.mark.parametrize("content", [None, "no json", "[]", '{"type": "service_account"}'])
def test_credentials_of_google_that_are_none_are_refused_by_name(tmp_path, monkeypatch, content):
    path = tmp_path / "account.json"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))

    with pytest.raises(CoreError, match=f"'{path}'.*cannot be used"):
        open_cloud("gs://bucket").check()


def test_a_way_to_authenticate_that_azure_does_not_have_is_refused(monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_AUTH_TYPE", "magic")

    with pytest.raises(CoreError, match="key, managed_identity or default"):
        open_cloud("as://account/container").check()


def test_a_server_without_such_a_place_imports_none_of_it():
    program = (
        "import sys, core.process, core.serve\n"
        "from core import plugins\n"
        "from core.options import Options\n"
        "from core.repository import open_repositories\n"
        "plugins.load_hooks()\n"
        "open_repositories(Options.defaults(model_repository=['/models', 's3://bucket']))\n"
        "print([name for name in ('fsspec', 's3fs', 'boto3') if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"
