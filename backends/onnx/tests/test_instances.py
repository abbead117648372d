"""Sessions of instances with host policies, and of instances that are added while others serve."""

import os
import sys

import numpy as np
import pytest

from core.system.platform import PORTABLE

X = np.array([[1, 2, 3]], np.float32)


@pytest.fixture
def core():
    """Return a core that this process may use."""
    return max(os.sched_getaffinity(0))


@pytest.mark.skipif(PORTABLE, reason="only Linux says which cores a process may use")
def test_instances_share_a_session_with_those_of_the_same_cores(serve, identity, core, monkeypatch):
    made = []

    def noted(path, options, providers, name):
        made.append((os.sched_getaffinity(0), options.intra_op_num_threads))
        return opened(path, options, providers, name)

    module = sys.modules["backend_onnx.backend"]  # the package has another name `backend`
    opened = module.open_session
    monkeypatch.setattr(module, "open_session", noted)
    config = (
        'backend: "onnxruntime" max_batch_size: 4 instance_group [ { count: 2 kind: KIND_CPU }, '
    )
    config += '{ count: 2 kind: KIND_CPU host_policy: "one" } ]'

    model = serve(identity(), config, host_policy={"one": {"cpu-cores": f"{core}-{core}"}})

    assert len(made) == 2
    assert ({core}, 1) in made
    for _ in range(20):
        np.testing.assert_array_equal(model(x=X)["y"], X)


def test_a_session_continues_while_the_number_of_instances_changes(serve, identity, tmp_path):
    text = 'backend: "onnxruntime" max_batch_size: 4 dynamic_batching { } instance_group [ { count: N } ]'
    model = serve(identity(), text.replace("N", "1"))
    path = tmp_path / "models" / "m" / "config.pbtxt"

    for count in (4, 2, 1):
        path.write_text(text.replace("N", str(count)))
        model.served.load("m")
        answers = model.together(*[{"x": X * i} for i in range(30)])
        for i, answer in enumerate(answers):
            np.testing.assert_array_equal(answer["y"], X * i)
        assert model.config.instance_group[0].count == count

    assert model.served.executions("m") >= 3 * 8  # counted since the first load: four rows in each
