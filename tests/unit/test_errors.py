"""CoreError travels to other processes."""

import copy
import pickle

import pytest

from core.errors import (
    AuthorError,
    CoreError,
    DeadlineExceeded,
    Exhausted,
    Fatal,
    Kind,
    Loading,
    MemoryExhausted,
)
from frontends.in_process.values import Timeout

ERRORS = [
    CoreError(Kind.NOT_FOUND, "no model 'm'"),
    AuthorError(Kind.INTERNAL, "execute() failed"),
    DeadlineExceeded(),
    Exhausted("too many requests", 2.5),
    Fatal("the device is gone"),
    Loading("model 'm' is loading"),
    MemoryExhausted("the request is too large"),
    Timeout(Kind.UNAVAILABLE, "model 'm' did not answer"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "travel", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))], ids=["copy", "pickle"]
)
def test_an_error_keeps_its_class_its_text_and_all_fields(error, travel):
    found = travel(error)

    assert type(found) is type(error)
    assert (str(found), repr(found)) == (str(error), repr(error))
    assert vars(found) == vars(error)
