"""Errors as answers."""

import json

import pytest

from core.errors import CoreError, Kind
from frontends.http.errors import STATUS, error_answer, refusal


def test_every_kind_has_a_status():
    assert set(STATUS) == set(Kind)


@pytest.mark.parametrize("kind,status", STATUS.items())
def test_an_error_is_an_object_with_its_text(kind, status):
    answer = error_answer(CoreError(kind, 'snow \u2603 "quoted"\n'))

    assert (answer.status, dict(answer.headers)) == (status, {"Content-Type": "application/json"})
    assert json.loads(answer.body) == {"error": 'snow \u2603 "quoted"\n'}


def test_a_text_may_have_lone_surrogates():
    assert json.loads(refusal(404, "model '\udcff'").body) == {"error": "model '\\udcff'"}
