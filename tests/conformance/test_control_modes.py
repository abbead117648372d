"""The modes of model repository control beside explicit: none and poll."""

import shutil
import time

import pytest
from conformance.protocol import refused, wait_until
from conformance.repository_control import double, index, load


def test_none_mode_refuses_load_and_unload_with_503(basic):
    refused(load(basic, "plain"), 503)
    refused(basic.post("/v2/repository/models/plain/unload"), 503)
    assert basic.ready("plain")


def test_none_mode_lists_every_version_in_the_index(basic):
    versions = [entry["version"] for entry in index(basic) if entry["name"] == "versioned_all"]
    assert sorted(versions) == ["1", "2", "3"]


@pytest.fixture(scope="module")
def polled(launch):
    return launch(["plain"], "--model-control-mode=poll", "--repository-poll-secs=1")


def settle():
    """Let some polls pass: a file that vanishes while its model loads is another case."""
    time.sleep(4)


def test_polling_finds_new_changed_and_removed_models(polled):
    assert polled.ready("plain")
    polled.add_model("add_sub")
    assert wait_until(lambda: polled.ready("add_sub"))
    settle()
    file = polled.repository / "plain" / "1" / "model.py"
    file.write_text(file.read_text().replace("* 2", "* 9"))
    assert wait_until(lambda: double(polled) == [27])
    settle()
    polled.remove_model("add_sub")
    assert wait_until(lambda: not polled.ready("add_sub"))


def test_polling_finds_a_new_version(polled):
    settle()
    shutil.copytree(polled.repository / "plain" / "1", polled.repository / "plain" / "2")
    assert wait_until(lambda: polled.ready("plain", 2))
    assert wait_until(lambda: not polled.ready("plain", 1))


def test_poll_mode_refuses_load_and_unload(polled):
    refused(load(polled, "plain"), 503)
