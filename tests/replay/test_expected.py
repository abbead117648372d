"""Answers of a replay may differ if they depend on files and moments that are gone; others may not."""

from pathlib import Path

import pytest

from replay.expected import reason
from replay.recorded import Recorded

INDEX = "/v2/repository/index"
LOAD = "/v2/repository/models/m/load"
EMPTY = "answers differ at byte 5: 'a', now 'b'"
NO_FILES = """status 200, now 500: '{"error":"failed to load \\'m\\', failed to poll fro'…"""


def of(path, text, *, mode="explicit", model=""):
    """The reason on a server of this mode."""
    recorded = Recorded(Path(), Path(), [f"--model-control-mode={mode}"], {})
    return reason(recorded, {"path": path, "text": text, "model": model})


@pytest.mark.parametrize("mode", ["explicit", "poll"])
@pytest.mark.parametrize(
    ("path", "text"), [(INDEX, EMPTY), (LOAD, NO_FILES), ("/v2/models/plain/infer", EMPTY)]
)
def test_what_depends_on_changing_models_may_differ_where_they_change(mode, path, text):
    assert of(path, text, mode=mode)
    assert of(path, text, mode="none") is None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (INDEX, "status 200, now 500: ''"),
        (LOAD, "status 200, now 500: 'out of memory'"),
        (LOAD, "status 400, now 200"),
        ("/v2/models/plain/infer", "status 200, now 400: ''"),
        ("/v2/models/add_sub/infer", EMPTY),
        ("/v2/models/plain/config", EMPTY),
    ],
)
def test_any_other_difference_of_such_a_server_counts(path, text):
    assert of(path, text) is None
