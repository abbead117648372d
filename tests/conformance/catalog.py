"""Variants of the models: the same code under another configuration."""

from conformance.model import Model

DTYPES = [
    "BOOL",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "FP16",
    "FP32",
    "FP64",
    "BF16",
    "BYTES",
]


def config_type(dtype):
    """The name that a data type has in config.pbtxt."""
    return "TYPE_STRING" if dtype == "BYTES" else f"TYPE_{dtype}"


def identity(name, dtype, dims="-1", batch=8, extra=""):
    return Model(
        name,
        "identity",
        config=f"""
backend: "python"
max_batch_size: {batch}
input [ {{ name: "INPUT0" data_type: {config_type(dtype)} dims: [ {dims} ] }} ]
output [ {{ name: "OUTPUT0" data_type: {config_type(dtype)} dims: [ {dims} ] }} ]
{extra}
""",
    )


IDENTITY_ALL = [identity(f"identity_{dtype.lower()}", dtype) for dtype in DTYPES]

# Not a file of models/, so that tools which read every Python file can.
FAIL_SYNTAX = Model(
    "fail_syntax",
    "fail_init",
    files={
        "1/model.py": "class TritonPythonModel:\n    def execute(self, requests)\n        pass\n"
    },
)
