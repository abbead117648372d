"""The models of the soak. Clients compute their answers, too.

echo   OUTPUT0 = INPUT0
plus   INPUT0 + 1, after a few milliseconds
sums   the sum of its sequence so far
"""

from __future__ import annotations

from pathlib import Path

NAMES = ("echo", "plus", "sums")

_X = 'input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ 4 ] } ]\n'
_Y = 'output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 4 ] } ]\n'
_COUNT = "instance_group [ { kind: KIND_CPU count: 4 } ]\n"
_INLINE = 'parameters { key: "EXECUTION_MODE" value { string_value: "thread" } }\n'
_SEQUENCES = """
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  oldest { max_candidate_sequences: 1000 }
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
  ]
}
"""
_START = """import time
import triton_python_backend_utils as pb_utils


def given(request, name):
    return pb_utils.get_input_tensor_by_name(request, name).as_numpy()


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(each) for each in requests]

    def answer(self, request):
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", self.value(request))])

"""
_PLUS = (
    _START
    + """    def value(self, request):
        time.sleep(0.003)
        return given(request, "INPUT0") + 1
"""
)
_SUMS = (
    _START
    + """    sums = {}  # of all instances

    def value(self, request):
        key = int(given(request, "CORRID").reshape(-1)[0])
        before = 0 if given(request, "START").reshape(-1)[0] else self.sums[key]
        self.sums[key] = before + given(request, "INPUT0")
        return self.sums[key]
"""
)


def write(root: Path) -> None:
    """Make the repository."""
    texts = {"echo": "", "plus": _PLUS, "sums": _SUMS}
    for name, text in texts.items():
        backend = "python" if text else "identity"
        config = f'backend: "{backend}"\n' + _X + _Y + _COUNT
        config += (_INLINE if text else "") + (_SEQUENCES if name == "sums" else "")
        (root / name / "1").mkdir(parents=True)
        (root / name / "config.pbtxt").write_text(config)
        if text:
            (root / name / "1" / "model.py").write_text(text)
