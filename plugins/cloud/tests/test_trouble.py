"""Failures between a server and its store: clear errors, retries, and no partial files."""

import json
import socket

import pytest
from core_cloud.repository import open_cloud

from core.errors import CoreError
from core.options import Options
from core.server import InferenceServer

from .emulators import S3, Azure


def refusal(url):
    """Return the text of the error that `check` of a repository raises; it must raise one."""
    with pytest.raises(CoreError) as refused:
        open_cloud(url).check()
    return refused.value.message


def is_transfer(path):
    """Return a function (request) → whether it is for the content of the object at `path`."""

    def found(request):
        name = path.replace("/", "%2F")
        return request.startswith("GET") and (
            f"/{path}" in request or (f"{name}?" in request and "alt=media" in request)
        )

    return found


def once(spoiled, which):
    """A function for Recorder.spoil: `spoiled` for the first request that `which` accepts, else None."""
    done = []

    def spoil(request):
        if which(request) and not done:
            done.append(request)
            return spoiled
        return None

    return spoil


@pytest.fixture
def no_pause(monkeypatch):
    monkeypatch.setattr("core_cloud.store._PAUSE_S", 0.001)


def test_wrong_credentials_are_refused_with_advice(shelf, monkeypatch):
    shelf.model("m", "3")
    for name, value in shelf.emulator.wrong.items():
        monkeypatch.setenv(name, value)

    text = refusal(shelf.url)

    assert f"'{shelf.url}'" in text
    assert "the credentials may not read" in text
    assert "AWS_SECRET_ACCESS_KEY" in text or "GOOGLE_APPL" in text or "AZURE_STORAGE_KEY" in text


@pytest.mark.parametrize("emulator", [S3], ids=["s3"], indirect=True)
def test_missing_credentials_are_an_error_that_names_them(shelf, monkeypatch, tmp_path):
    for name in shelf.emulator.environment:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))  # without files of Amazon's
    shelf.emulator.recorder.spoil = lambda request: 403  # S3's response without credentials

    text = refusal(shelf.url)

    assert "no credentials were found, and it is not open to everybody" in text
    assert "AWS_ACCESS_KEY_ID" in text


@pytest.mark.parametrize("emulator", [S3], ids=["s3"], indirect=True)
def test_credentials_of_a_file_count_and_are_read_again(shelf, monkeypatch, tmp_path):
    shelf.model("m", "3")
    right = shelf.emulator.environment
    path = tmp_path / "credentials.json"
    monkeypatch.setenv("TRITON_CLOUD_CREDENTIAL_PATH", str(path))

    def write(secret):
        entry = {"key_id": right["AWS_ACCESS_KEY_ID"], "secret_key": secret, "region": "us-east-1"}
        path.write_text(json.dumps({"s3": {"": {"key_id": "any"}, shelf.url: entry}}))

    repository = open_cloud(shelf.url)
    write("wrong")
    with pytest.raises(CoreError, match=r"credentials\.json"):
        repository.check()
    write(right["AWS_SECRET_ACCESS_KEY"])
    repository.check()

    assert repository.names() == {"m"}


def test_a_bucket_that_is_missing_is_named(shelf):
    text = refusal(shelf.emulator.url("models", bucket="nobodys"))

    assert "'nobodys'" in text
    assert "check that" in text


def test_a_path_without_objects_is_no_repository(shelf):
    assert f"there is nothing at 'shelf/{shelf.path}'" in refusal(shelf.url)


def test_a_bucket_with_only_a_path_is_a_repository(shelf):
    shelf.model("m", "3")

    repository = open_cloud(shelf.emulator.url(""))
    repository.check()

    assert shelf.path in repository.names()


async def test_the_server_does_not_start_without_its_repository(shelf, serve):
    with pytest.raises(CoreError, match="there is nothing at"):
        await serve(exit_on_error=False)


async def test_an_error_that_passes_is_tried_again(shelf, serve, factor, no_pause):
    shelf.model("m", "3")
    shelf.emulator.recorder.spoil = once(503, is_transfer("m/1/factor.txt"))

    server = await serve()

    assert await factor(server) == 3


async def test_a_transfer_that_is_cut_is_tried_again(shelf, serve, factor, no_pause):
    shelf.model("m", "3" * 20)
    cut = once(lambda body: body[:5], is_transfer("m/1/factor.txt"))
    shelf.emulator.recorder.spoil = cut

    server = await serve()

    assert await factor(server) == pytest.approx(float("3" * 20))


async def test_content_that_differs_from_the_listing_is_never_loaded(
    shelf, serve, backend, no_pause
):
    shelf.model("m", "333")
    which = is_transfer("m/1/factor.txt")
    shelf.emulator.recorder.spoil = lambda request: (
        (lambda body: b"444") if which(request) else None
    )

    server = await serve()

    (entry,) = server.manager.index()
    assert entry["state"] == "UNAVAILABLE"
    assert "MD5" in entry["reason"] or "checksum" in entry["reason"]
    assert "4 attempts" in entry["reason"]
    assert backend.files == []


@pytest.mark.parametrize("emulator", [S3], ids=["s3"], indirect=True)
def test_a_multipart_object_that_changes_before_the_fetch_is_refused(shelf, no_pause):
    """Its ETag is no MD5, and the new weights of a model are often as large as the old ones."""
    shelf.put_in_parts("m/1/weights", "one")
    repository = open_cloud(shelf.url)
    repository.listing("m")
    directory = repository.directory("m")
    shelf.put_in_parts("m/1/weights", "two")

    with pytest.raises(CoreError, match="the object has changed since it was listed"):
        directory.fetch([1])

    repository.listing("m")
    directory = repository.directory("m")
    directory.fetch([1])
    assert (directory.path / "1" / "weights").read_text() == "two"
    repository.close()


@pytest.mark.parametrize("emulator", [S3], ids=["s3"], indirect=True)
async def test_a_reload_that_cannot_fetch_keeps_the_serving_version(shelf, serve, factor, no_pause):
    shelf.model("m", "3")
    server = await serve(model_control_mode="poll")
    shelf.put("m/1/factor.txt", "30")
    which = is_transfer("m/1/factor.txt")
    shelf.emulator.recorder.spoil = lambda request: 404 if which(request) else None

    await server.manager.poll()
    assert await factor(server) == 3
    shelf.emulator.recorder.spoil = lambda request: None
    shelf.put("m/1/factor.txt", "300")
    await server.manager.poll()

    assert await factor(server) == 300


@pytest.mark.parametrize("emulator", [S3], ids=["s3"], indirect=True)
async def test_a_failed_poll_keeps_the_serving_version(shelf, serve, factor, caplog, monkeypatch):
    shelf.model("m", "3")
    server = await serve(model_control_mode="poll")
    shelf.emulator.recorder.spoil = lambda request: 403

    await server.manager.poll()

    assert await factor(server) == 3
    assert "polling the model repositories failed: model repository" in caplog.text


@pytest.mark.parametrize("emulator", [S3], ids=["s3"], indirect=True)  # others have no such names
async def test_names_that_are_no_paths_are_left_out(shelf, serve, backend, caplog):
    shelf.model("m", "3")
    for name in ("m/1/../../../outside", "m/1//absolute", "m/1/./here"):
        shelf.put(name, "content")

    await serve()

    assert backend.files == [["1/factor.txt", "config.pbtxt"]]
    assert "no file of a model can have that name" in caplog.text


@pytest.mark.parametrize("emulator", [S3, Azure], ids=["s3", "as"], indirect=True)
async def test_a_folder_of_a_version_may_be_empty(shelf, serve):
    step = 'key: "x" value: "x"'
    shelf.model("m", "3")
    shelf.put("e/1/", "")
    shelf.put(
        "e/config.pbtxt",
        f"""platform: "ensemble"
        input [ {{ name: "x" data_type: TYPE_FP32 dims: [ -1 ] }} ]
        output [ {{ name: "y" data_type: TYPE_FP32 dims: [ -1 ] }} ]
        ensemble_scheduling {{ step [ {{ model_name: "m" model_version: -1
          input_map {{ {step} }} output_map {{ key: "y" value: "y" }} }} ] }}""",
    )

    server = await serve()

    assert [each["state"] for each in server.manager.index()] == ["READY", "READY"]


@pytest.mark.parametrize("emulator", [S3], ids=["s3"], indirect=True)
async def test_a_permanent_folder_keeps_fetched_files(shelf, factor, backend, tmp_path):
    shelf.model("m", "3")
    options = Options.defaults(
        model_repository=[shelf.url], cloud_cache_directory=str(tmp_path / "kept")
    )

    for expected in (["m/1/factor.txt", "m/config.pbtxt"], []):
        server = InferenceServer(options, find_backend=lambda name: backend)
        await server.start()
        assert await factor(server) == 3
        await server.stop(30)
        assert shelf.fetched() == expected
    assert [each.name for each in (tmp_path / "kept").iterdir()] == ["objects"]


@pytest.mark.parametrize("emulator", [S3], ids=["s3"], indirect=True)
async def test_requests_may_name_the_bucket_in_the_host_name(shelf, serve, factor, monkeypatch):
    shelf.model("m", "3")
    resolve = socket.getaddrinfo

    def on_loopback(host, *args, **kwargs):
        there = str(host).endswith(".localhost")
        return resolve("127.0.0.1" if there else host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", on_loopback)
    monkeypatch.setenv("AWS_S3_ADDRESSING_STYLE", "virtual")
    _, bucket, path = shelf.url.removeprefix("s3://").split("/", 2)

    url = f"s3://s3.localhost:{shelf.emulator.recorder.port}/{bucket}/{path}"
    server = await serve(model_repository=[url])

    assert await factor(server) == 3
    hosts = shelf.emulator.recorder.hosts
    assert {host.partition(":")[0] for host in hosts[-3:]} == {f"{bucket}.s3.localhost"}
    assert not shelf.emulator.recorder.requests[-1].startswith(f"GET /{bucket}/")


@pytest.mark.parametrize("emulator", [S3], ids=["s3"], indirect=True)
def test_an_unknown_addressing_style_is_refused_with_the_known_ones(shelf, monkeypatch):
    monkeypatch.setenv("AWS_S3_ADDRESSING_STYLE", "dns")

    text = refusal(shelf.url)

    assert f"'{shelf.url}': 'dns' is no addressing style" in text
    assert "AWS_S3_ADDRESSING_STYLE" in text
    assert text.endswith("is path, virtual or auto")
