"""Answers of a replay may differ if they depend on files and moments that are gone; others may not."""

from pathlib import Path

import pytest

from replay.expected import reason
from replay.recorded import Recorded

INDEX = "/v2/repository/index"
LOAD = "/v2/repository/models/m/load"
EMPTY = "answers differ at byte 5: 'a', now 'b'"
NO_FILES = """status 200, now 500: '{"error":"failed to load \\'m\\', failed to poll fro'…"""


INFER = "/v2/models/add_sub/infer"
COUNTED = ("cancellable", "endless", "ordered", "plain_batching", "process", "warmed")
GONE = """status 200, now 404: '{"error":"Unable to find shared memory region: \\'region7\\'"}'"""


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


def of_basic(path, text, *options):
    """The reason on a server with these options."""
    recorded = Recorded(Path(), Path(), list(options), {})
    return reason(recorded, {"path": path, "text": text, "model": "add_sub"})


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (INFER, GONE),
        (INFER, "status 400, now 404: \"Unable to find shared memory region: 'region12'\""),
        (
            "/inference.GRPCInferenceService/ModelInfer",
            "status 0, now 5: Unable to find shared memory region: 'region7'",
        ),
    ],
)
def test_regions_of_the_suite_are_gone_on_the_server_that_had_them(path, text):
    assert of_basic(path, text)
    assert of_basic(path, text, "--model-control-mode=explicit") is None
    assert of_basic(INDEX, text) is None


@pytest.mark.parametrize(
    "text",
    [
        GONE.replace("region7", "other"),
        "status 404, now 200",
        "status 200, now 500: 'Unable to map shared memory region: 'region7''",
        "error \"Unable to find shared memory region: 'region7'\", now 'failed'",
    ],
)
def test_any_other_difference_with_shared_memory_counts(text):
    assert of_basic(INFER, text) is None


@pytest.mark.parametrize("model", COUNTED)
def test_models_whose_answers_depend_on_the_moment_may_differ_in_content_only(model):
    assert of(INFER, EMPTY, mode="none", model=model)
    assert of(INFER, "status 200, now 500: ''", mode="none", model=model) is None
    assert of(INFER, EMPTY, mode="none", model="add_sub") is None
