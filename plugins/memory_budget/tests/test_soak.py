"""The proof of `make soak-memory`, shorter: 200 small models on a quarter of their memory."""

import pytest
from memory_budget.run import soak


@pytest.mark.timeout(300)
def test_200_models_are_served_on_a_quarter_of_their_memory(tmp_path):
    found = soak(tmp_path, least_mb=0.5, most_mb=2, requests=600, python=0)
    print(found.facts, dict(found.results))

    assert found.problems == []
    assert found.results["answered"] > 500
