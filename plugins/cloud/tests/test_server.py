"""A server process over a repository in S3: it serves it together with a folder, and leaves no files."""

import signal
import threading

import pytest
from conformance.protocol import data_of, tensor, wait_until
from conformance.server import StartError

from .emulators import S3

CONFIG = """
backend: "identity"
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


@pytest.fixture(scope="module")
def store():
    made = S3()
    made.put("models/far/config.pbtxt", CONFIG.encode())
    made.put("models/far/1/weights.bin", b"numbers")
    yield made
    made.close()


@pytest.fixture
def start(launch, store, tmp_path):
    """A function (*options) that starts the program over the store, with `temporary` as temporary folder."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {
        **store.environment,
        "TMPDIR": str(temporary),
        "NO_PROXY": "127.0.0.1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }

    def start(*options, path="models", **more):
        changes = {**environment, **more.pop("environment", {})}
        url = store.url(path)
        return launch([], f"--model-repository={url}", *options, environment=changes, **more)

    start.temporary = temporary
    yield start
    store.recorder.spoil = lambda request: None


def ask(server):
    return data_of(server.infer("far", {"inputs": [tensor("INPUT0", [1.5, 2.5])]}))


def end(server):
    server.process.send_signal(signal.SIGTERM)
    return server.process.wait(60)


def test_a_bucket_is_followed_and_nothing_is_left(start, store):
    server = start("--model-control-mode=poll", "--repository-poll-secs=1")
    assert ask(server) == [1.5, 2.5]

    store.put("models/near/config.pbtxt", CONFIG.encode())
    store.put("models/near/1/weights.bin", b"numbers")
    assert wait_until(lambda: server.get("/v2/models/near/ready").status == 200)
    for name in ("config.pbtxt", "1/weights.bin"):
        store.delete(f"models/near/{name}")
    assert wait_until(lambda: server.get("/v2/models/near/ready").status != 200)

    assert len(list(start.temporary.iterdir())) == 1
    assert end(server) == 0
    assert list(start.temporary.iterdir()) == []


def test_several_workers_share_a_folder_of_fetched_files(start, store, tmp_path):
    store.recorder.requests.clear()

    server = start("--workers=2", f"--cloud-cache-directory={tmp_path / 'kept'}")

    assert "each worker fetches" not in server.log_text()
    assert ask(server) == [1.5, 2.5]
    assert sorted(store.fetched()) == ["models/far/1/weights.bin", "models/far/config.pbtxt"]
    assert end(server) == 0
    assert [each.name for each in (tmp_path / "kept").iterdir()] == ["objects"]


def test_workers_are_warned_once_that_each_fetches_for_itself(start, store):
    log = start("--workers=2").log_text()

    assert log.count(f"each worker fetches the models of '{store.url('models')}' for itself") == 1
    assert "--cloud-cache-directory lets them share" in log


def test_a_server_that_ends_while_it_fetches_leaves_nothing(start, store):
    asked, go = threading.Event(), threading.Event()

    def stall(request):
        if "weights" in request:
            asked.set()
            go.wait(30)

    store.recorder.spoil = stall
    server = start("--exit-timeout-secs=1", wait="live")
    assert asked.wait(30)

    status = end(server)
    go.set()

    assert status == 1
    assert list(start.temporary.iterdir()) == []


def test_a_repository_that_is_not_there_ends_the_start(start, store):
    with pytest.raises(StartError) as refused:
        start("--exit-on-error=false", path="none")

    assert refused.value.returncode == 1
    assert f"error: creating server: Internal - model repository '{store.url('none')}'" in (
        refused.value.log
    )
    assert "there is nothing at 'shelf/none'" in refused.value.log
    assert list(start.temporary.iterdir()) == []
