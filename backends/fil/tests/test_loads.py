"""Many loads of a forest need no more memory. LOADS=1000 is the long form."""

import os

import pytest
from core_testing.leftovers import growth_by_loads

LOADS = int(os.environ.get("LOADS", "50"))


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_memory_is_flat_over_many_loads(serve, forests, kind):
    rows, labels = forests.tumours()
    objective = {"xgboost": "binary:logistic", "lightgbm": "binary"}[kind]
    trained = getattr(forests, kind)(rows, labels, trees=100, objective=objective)
    model = serve(trained)

    assert growth_by_loads(model.served, "m", lambda: model(rows[:8]), LOADS) < 8 << 20
