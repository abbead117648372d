"""The ports of platforms on a server of several processes."""

import os
import shutil
import signal
import uuid
from pathlib import Path

import pytest
from conformance.launcher import free_ports
from conformance.model import Model
from conformance.protocol import data_of, tensor, wait_until

MODELS = Path("/opt/ml/models")  # where SageMaker unpacks
STARTED = "Started Sagemaker HTTPService"  # in the log, behind the number of the process
BODY = {"inputs": [tensor("INPUT0", [1, 2])]}


@pytest.fixture
def unpacked():
    """(hash, url) of a model that SageMaker has unpacked."""
    label = f"test{uuid.uuid4().hex}"
    missing = [folder for folder in (MODELS, MODELS.parent) if not folder.exists()]
    try:
        (MODELS / label / "model").mkdir(parents=True)
    except OSError as error:
        pytest.skip(f"{MODELS} cannot be written: {error}")
    Model("plain").write(MODELS / label / "model")
    yield label, str(MODELS / label / "model")
    shutil.rmtree(MODELS / label)
    for folder in missing:
        if not any(folder.iterdir()):
            folder.rmdir()


def test_a_model_of_sagemaker_is_in_all_workers_also_in_one_that_comes_later(launch, unpacked):
    (port,) = free_ports(1)
    server = launch(
        [],
        "--workers=2",
        "--allow-sagemaker=true",
        f"--sagemaker-port={port}",
        "--model-control-mode=explicit",
    )
    label, url = unpacked

    def invoke():
        return server.post(f"/models/{label}/invoke", BODY, port=port)

    def everywhere(ask):
        return [ask() for _ in range(8)]

    loaded = server.post("/models", {"model_name": label, "url": url}, port=port)
    assert loaded.status == 200, loaded.body
    assert [data_of(each) for each in everywhere(invoke)] == [[2, 4]] * 8

    started = [line for line in server.log_text().splitlines() if STARTED in line]
    os.kill(int(started[0].split()[2]), signal.SIGKILL)
    assert wait_until(lambda: server.log_text().count(STARTED) == 3, 60)
    assert [data_of(each) for each in everywhere(invoke)] == [[2, 4]] * 8

    assert server.request("DELETE", f"/models/{label}", port=port).status == 200
    assert {each.status for each in everywhere(invoke)} == {404}
