"""The models of the soak: their computations are used to check the responses.

echo, passing         OUTPUT0 = INPUT0; backend identity. `passing` is unloaded and loaded repeatedly
crowded               the same, after 20 ms, with a queue of eight requests
scaled                INPUT0 times the number of the version; ONNX. Its versions come and go
plus, counted, step   INPUT0 + 1; Python in child processes, on threads whose number changes, in the
                      shared process
chain                 3 · INPUT0 + 1; an ensemble of `tripled` (ONNX) and `step`
sums                  the sum of its sequence so far; Python
repeat                one answer for each number of IN; decoupled, native
words                 the same; decoupled, Python
overridden            INPUT0 + the number of its configuration; Python
slow                  INPUT0, after three seconds; Python
"""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.models.scaled import scaled

_X = 'input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ -1 ] } ]\n'
_Y = 'output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ -1 ] } ]\n'
SECONDS_OF_SLOW = 3.0
NEW_VERSIONS = (1, 2, 3)


def _instances(count: int) -> str:
    return f"instance_group [ {{ kind: KIND_CPU count: {count} }} ]\n"


def _parameter(key: str, value: str) -> str:
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


def _python(body: str) -> str:
    return (
        "import time\nimport numpy as np\nimport triton_python_backend_utils as pb_utils\n\n"
        "def answer(name, array):\n"
        "    return pb_utils.InferenceResponse([pb_utils.Tensor(name, array)])\n\n"
        "def given(request, name):\n"
        "    return pb_utils.get_input_tensor_by_name(request, name).as_numpy()\n\n"
        "class TritonPythonModel:\n" + body
    )


_PLUS = _python(
    "    def execute(self, requests):\n"
    "        return [answer('OUTPUT0', given(each, 'INPUT0') + 1) for each in requests]\n"
)
# Each of its processes writes a file in `processes` beside the repository.
_PLUS_IN_PROCESSES = _python(
    "    def initialize(self, args):\n"
    "        import os, pathlib\n"
    "        folder = pathlib.Path(args['model_repository']).parents[1] / 'processes'\n"
    "        self.file = folder / str(os.getpid())\n"
    "        self.file.touch()\n"
    "    def finalize(self):\n"
    "        self.file.unlink(missing_ok=True)\n"
    "    def execute(self, requests):\n"
    "        return [answer('OUTPUT0', given(each, 'INPUT0') + 1) for each in requests]\n"
)
_SLOW = _python(
    "    def execute(self, requests):\n"
    f"        time.sleep({SECONDS_OF_SLOW})\n"
    "        return [answer('OUTPUT0', given(each, 'INPUT0')) for each in requests]\n"
)
_SUMS = _python(
    "    sums = {}\n"
    "    def execute(self, requests):\n"
    "        return [self.one(each) for each in requests]\n"
    "    def one(self, request):\n"
    "        key = int(given(request, 'CORRID').reshape(-1)[0])\n"
    "        before = 0 if given(request, 'START').reshape(-1)[0] else self.sums[key]\n"
    "        self.sums[key] = before + given(request, 'INPUT0')\n"
    "        found = answer('OUTPUT0', self.sums[key])\n"
    "        if given(request, 'END').reshape(-1)[0]:\n"
    "            del self.sums[key]\n"
    "        return found\n"
)
_WORDS = _python(
    "    def execute(self, requests):\n"
    "        for request in requests:\n"
    "            sender = request.get_response_sender()\n"
    "            for number in given(request, 'IN'):\n"
    "                sender.send(answer('OUT', np.array([number], np.int32)))\n"
    "            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)\n"
)
_SEQUENCES = """
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  direct { }
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
    { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
  ]
}
"""
_CHAIN = """
platform: "ensemble"
ensemble_scheduling { step [
  { model_name: "tripled" model_version: -1
    input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "between" } },
  { model_name: "step" model_version: -1
    input_map { key: "INPUT0" value: "between" } output_map { key: "OUTPUT0" value: "OUTPUT0" } }
] }
"""
_IDENTITY = 'backend: "identity"\n' + _X + _Y
_IN_PYTHON = 'backend: "python"\n' + _X + _Y
_ONNX = (
    'backend: "onnxruntime"\n' + _X + _Y + _instances(1) + _parameter("intra_op_thread_count", "1")
)
_QUEUE = (
    "max_batch_size: 4\ndynamic_batching { default_queue_policy { max_queue_size: 8 } }\n"
    + _parameter("execute_delay_ms", "20")
)


def add(addend: int) -> tuple[str, str]:
    """config.pbtxt and model.py of `overridden`, which adds this number."""
    return (
        _IN_PYTHON + _parameter("ADDEND", str(addend)),
        _python(
            "    def initialize(self, args):\n"
            "        import json\n"
            "        found = json.loads(args['model_config'])['parameters']['ADDEND']\n"
            "        self.addend = int(found['string_value'])\n"
            "    def execute(self, requests):\n"
            "        return [answer('OUTPUT0', given(each, 'INPUT0') + self.addend) "
            "for each in requests]\n"
        ),
    )


def counted(count: int) -> str:
    """config.pbtxt of `counted` with so many instances."""
    return _IN_PYTHON + _parameter("EXECUTION_MODE", "thread") + _instances(count)


def write(root: Path) -> None:
    """Make the repository."""
    _model(root, "echo", _IDENTITY + _instances(2), {})
    _model(root, "passing", _IDENTITY, {})
    # The batch dimension is the one that has any size.
    _model(root, "crowded", 'backend: "identity"\n' + _QUEUE + (_X + _Y), {})
    _model(root, "scaled", _ONNX, {"1/model.onnx": scaled(1)})
    _model(root, "tripled", _ONNX, {"1/model.onnx": scaled(3)})
    _model(root, "plus", _IN_PYTHON + _instances(2), {"1/model.py": _PLUS_IN_PROCESSES})
    processes(root).mkdir()
    _model(root, "counted", counted(2), {"1/model.py": _PLUS})
    _model(root, "step", _IN_PYTHON + _parameter("EXECUTION_MODE", "shared"), {"1/model.py": _PLUS})
    _model(root, "chain", _CHAIN + _X + _Y, {})
    _model(root, "sums", _IN_PYTHON + _instances(8) + _SEQUENCES, {"1/model.py": _SUMS})
    _model(
        root,
        "repeat",
        'backend: "repeat"\nmodel_transaction_policy { decoupled: true }\n'
        'input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] },\n'
        '  { name: "DELAY" data_type: TYPE_UINT32 dims: [ -1 ] },\n'
        '  { name: "WAIT" data_type: TYPE_UINT32 dims: [ 1 ] } ]\n'
        'output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] },\n'
        '  { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] } ]\n' + _instances(4),
        {},
    )
    _model(
        root,
        "words",
        'backend: "python"\nmodel_transaction_policy { decoupled: true }\n'
        'input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] } ]\n'
        'output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]\n',
        {"1/model.py": _WORDS},
    )
    config, text = add(1)
    _model(root, "overridden", config, {"1/model.py": text})
    thread = _parameter("EXECUTION_MODE", "thread")
    _model(root, "slow", _IN_PYTHON + thread + _instances(8), {"1/model.py": _SLOW})


def _model(root: Path, name: str, config: str, files: dict[str, str | bytes]) -> None:
    (root / name / "1").mkdir(parents=True, exist_ok=True)
    (root / name / "config.pbtxt").write_text(config)
    for path, content in files.items():
        (root / name / path).write_bytes(content.encode() if isinstance(content, str) else content)


def processes(root: Path) -> Path:
    """The folder where the processes of `plus` leave a file, named by their ids."""
    return root.parent / "processes"


def put_version(root: Path, number: int) -> None:
    """Give `scaled` this version and take the others away."""
    folder = root / "scaled"
    part = root.parent / "version.part"  # rename it when it is complete
    part.mkdir()
    (part / "model.onnx").write_bytes(scaled(number))
    part.rename(folder / str(number))
    for other in NEW_VERSIONS:
        if other != number:
            shutil.rmtree(folder / str(other), ignore_errors=True)
