"""Jobs survive the end of the server's process."""

import subprocess
import sys

import pytest

from .conftest import LINES, batch
from .processes import Process


@pytest.fixture
def process(tmp_path):
    made = Process(tmp_path)
    yield made
    made.stop()


def test_a_batch_goes_on_after_kill(process):
    client = process.start()
    id = client.submit("m", batch(*range(200)), LINES)["id"]
    waiting = client.submit("m", batch(1000), LINES)["id"]
    client.until(id, lambda job: job["requests"]["succeeded"] >= 40)
    process.kill()
    before = process.notes()

    client = process.start()
    assert client.ended(id)["requests"] == {"total": 200, "succeeded": 200, "failed": 0}
    assert client.ended(waiting)["state"] == "done"
    lines = client.results(id).lines
    assert [line["index"] for line in lines] == list(range(200))
    values = [line["response"]["outputs"][0]["data"][0] for line in lines]
    assert values == [2.0 * each for each in range(200)]

    # Only what was at the model at the kill was executed again.
    done = [each for each in process.notes() if each < 200]
    assert set(done) == set(range(200))
    assert len(before) >= 40
    assert len(done) <= 200 + 8
    assert "jobs go on" in process.log.read_text()


def test_a_batch_goes_on_after_an_orderly_stop(process):
    client = process.start()
    id = client.submit("m", batch(*range(300)), LINES)["id"]
    client.until(id, lambda job: job["requests"]["succeeded"] >= 20)
    assert process.stop() == 0
    assert len(process.notes()) < 300  # it does not wait for the end of the job

    client = process.start()
    assert client.ended(id)["requests"]["succeeded"] == 300
    # What was at the model has got its result before the end.
    assert sorted(process.notes()) == list(range(300))


def test_a_folder_belongs_to_one_server(process):
    process.start()
    second = subprocess.run(
        [
            *(sys.executable, "-m", "core.serve", f"--jobs-folder={process.folder / 'jobs'}"),
            *(f"--model-repository={process.folder / 'models'}", "--http-port=0"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert second.returncode == 1
    assert "is in use by another server; give each server a folder" in second.stderr
