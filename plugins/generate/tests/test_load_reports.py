"""What an engine adds to the load report of its server."""

import json

import pytest
from backend_testing.letters import letters

from frontends.shared.load_reports import LoadReports

pytest_plugins = ["core_testing.plugin"]


@pytest.fixture
def served(model_repository, serve_repository):
    settings = {"context": "100", "most": "2"}
    model_repository.add(
        "m",
        "".join(
            f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'
            for name, value in settings.items()
        ),
    )
    return serve_repository(letters)


def test_a_report_has_use_and_size_of_the_engines_memory(served):
    async def read():
        return LoadReports.of(served._server).text("json")

    named = json.loads(served._call(read()).removeprefix("JSON "))["named_metrics"]

    assert named["kv_cache_utilization"] == 0
    assert named["max_token_capacity"] == 200
