"""The soak of `make soak`, shorter: every kind of request, and every disturbance of its plan.

Its table is printed (`-s`). SOAK_SECONDS and SOAK_RATE make it longer or harder; a dedicated machine can
handle 500 requests per second.
"""

import os

import pytest
from soak.report import lines
from soak.run import soak

SECONDS = float(os.environ.get("SOAK_SECONDS", "20"))
RATE = float(os.environ.get("SOAK_RATE", "300"))


@pytest.mark.timeout(SECONDS * 3 + 300)
def test_no_request_is_lost_whatever_happens_meanwhile(tmp_path):
    found = soak(tmp_path, SECONDS, seed=1, rate=RATE)
    print("\n".join(lines(found)))

    assert found.problems == []
    happened = found.changes + found.visits
    assert {name.split()[0] for name in happened} >= {
        *("load", "kill", "leave", "cancel", "look", "fill_the_queue", "send_slowly"),
    }
