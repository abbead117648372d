"""The comparison with Model Analyzer gives both the same objective."""

import sys
from argparse import Namespace
from pathlib import Path

import pytest
from core_tune.flags.plan import plan_of

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def analyzer(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    before = set(sys.modules)
    import analyzer

    yield analyzer
    for name in ("analyzer", "models", "turns"):
        if name not in before:
            del sys.modules[name]


@pytest.mark.parametrize("model", ["cnn", "forest", "python"])
def test_core_tune_keeps_the_percentile_of_model_analyzer(analyzer, model):
    assert "perf_latency_p99" in analyzer.PROFILE

    plan = plan_of(
        [model, "-u", "host:8000", *analyzer.flags_of(Namespace(model=model, measurements=40))]
    )

    assert plan.objective.quantile == 0.99
