"""A repository with models that need no child process, and a server on it."""

import pytest
import tritonserver

IDENTITY = """
backend: "identity"
input [{ name: "INPUT0" data_type: TYPE_FP32 dims: [-1] }]
output [{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [-1] }]
"""

MODELS = {
    "identity": IDENTITY,
    "text": IDENTITY.replace("FP32", "STRING"),
    "bits": IDENTITY.replace("FP32", "BF16"),
    "batches": "max_batch_size: 8\ndynamic_batching {}\n" + IDENTITY,
    "labelled": IDENTITY.replace("[-1] }]\noutput", "[3] }]\noutput").replace(
        "[-1]", '[3] label_filename: "labels.txt"'
    ),
    "slow": IDENTITY + 'parameters { key: "execute_delay_ms" value { string_value: "2000" } }\n',
    "square": """
backend: "square"
model_transaction_policy { decoupled: true }
input [{ name: "IN" data_type: TYPE_INT32 dims: [1] }]
output [{ name: "OUT" data_type: TYPE_INT32 dims: [1] }]
""",
}


@pytest.fixture(scope="session")
def repository(tmp_path_factory):
    """Return a folder with MODELS. Tests must not change it."""
    folder = tmp_path_factory.mktemp("models")
    for name, text in MODELS.items():
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(text)
    (folder / "labelled" / "labels.txt").write_text("zero\none\ntwo\n")
    return folder


@pytest.fixture(scope="session")
def server(repository):
    """Return a started server on all models. Tests must not change it."""
    with_models = tritonserver.Server(model_repository=str(repository)).start(wait_until_ready=True)
    yield with_models
    with_models.stop()


@pytest.fixture
def explicit(repository):
    """Return a started server that has loaded no model."""
    found = tritonserver.Server(
        model_repository=str(repository),
        model_control_mode=tritonserver.ModelControlMode.EXPLICIT,
        exit_timeout=2,
    ).start(wait_until_ready=True)
    yield found
    if found._embedded is not None:
        found.stop()
