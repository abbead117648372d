"""Requests made from the server's own description, right ones and wrong ones: it keeps its word."""

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import GenerationMode

from core.control.repository import RepositoryControl
from frontends.http.openapi import description
from frontends.http.router import table

ROUTES = table({"repository": RepositoryControl})
schema = schemathesis.openapi.from_dict(json.loads(description(ROUTES)))
schema.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])


@pytest.fixture(scope="module")
def server(launch_for_all):
    return launch_for_all(["plain"], "--model-control-mode=explicit", "--load-model=*")


@schema.parametrize()
@settings(
    max_examples=8,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_a_request_of_any_kind_gets_an_answer_of_the_described_form(case, server):
    response = case.call(base_url=f"http://{server.http_address}", timeout=30)

    described = case.operation.definition.raw["responses"]
    assert str(response.status_code) in {*described, "404", "405", "500", "501", "503"}
    if response.status_code >= 400:
        error = json.loads(response.content)["error"] if response.content else ""
        assert "unexpected error in the server" not in error
    assert server.process.poll() is None
