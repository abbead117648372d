"""What `core explain` and the console say of the steps of an ensemble."""

import re
from types import SimpleNamespace

from core.options import Options
from frontends.commands.explain import explain
from frontends.commands.offline import OfflineModel

from .conftest import ensemble, parsed


def explained(text):
    """Stage → what it does."""
    config, signature = parsed(text)
    model = OfflineModel(SimpleNamespace(name="e", version=1), config, signature, None)
    lines = explain(model, Options.defaults()).splitlines()
    rows = [re.split(r"\s{2,}", line.partition("─► ")[2]) for line in lines if "─►" in line]
    return {stage: text for stage, _, text in rows}


def test_conditions_fallbacks_and_loops_are_named():
    found = explained(
        ensemble(
            "x FP32[-1] -> z FP32[-1]",
            "halve x=x -> y=a",
            "halve x=a -> y=z",
            step1_if="max(a) > 1",
            step1_else="a -> z",
            loop0_steps="0-1",
            loop0_while="max(z) > 2",
            loop0_max_turns="7",
            loop0_carry="z -> x",
            loop0_at_max_turns="last",
        )
    )

    assert found["step 0"] == "model 'halve': x as x → y as a"
    assert found["step 1"] == "model 'halve': a as x → y as z, if max(a) > 1, else a -> z"
    assert found["loop 0"] == (
        "steps 0-1, while max(z) > 2, max turns 7, at max turns last, carry z -> x"
    )
