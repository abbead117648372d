"""Rules of sequence_batching. Texts are Triton's up to the colon; the rest names the field."""

# ruff: noqa: E501 (a searchable text stays on one line)

import pytest

MODEL = (
    'backend: "python" max_batch_size: 4 '
    'input { name: "x" data_type: TYPE_FP32 dims: -1 } output { name: "y" data_type: TYPE_FP32 dims: -1 } '
)
START = "{ kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] }"
CORRID = "{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 }"
HERE = "for m: sequence_batching."
FIRST = "for m: sequence_batching.control_input[0] ('C').control[0]"


def control(*controls: str, name: str = "C") -> str:
    return f'control_input {{ name: "{name}" control [ {", ".join(controls)} ] }} '


def false_true(kind: str, values: str) -> str:
    return control(f"{{ kind: CONTROL_SEQUENCE_{kind} {values} }}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (control(START, name=""), f"sequence batching control tensor must have a name {HERE}control_input[0]"),
        (control(START) + control(CORRID),
         f"sequence batching control tensor 'C' is specified for multiple control kinds {HERE}control_input[1], and control_input[0]"),
        (control(START) + control(START, name="D"),
         f"sequence batching specifies multiple CONTROL_SEQUENCE_START tensors {FIRST}, sequence_batching.control_input[1] ('D').control[0]"),
        (control(CORRID, CORRID),
         f"sequence batching specifies multiple CONTROL_SEQUENCE_CORRID tensors {FIRST}, sequence_batching.control_input[0] ('C').control[1]"),
        (control("{ kind: 9 int32_false_true: [0, 1] }"),
         f"unknown sequence batching control kind 9 {FIRST}.kind; there are CONTROL_SEQUENCE_START, CONTROL_SEQUENCE_READY, CONTROL_SEQUENCE_END, CONTROL_SEQUENCE_CORRID"),
        (false_true("END", ""),
         f"sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_END {FIRST}"),
        (false_true("END", "fp32_false_true: [0, 1] int32_false_true: [0, 1]"),
         f"sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' for CONTROL_SEQUENCE_END {FIRST} has int32_false_true and fp32_false_true"),
        (false_true("READY", "int32_false_true: [0, 1, 2]"),
         f"sequence batching control 'int32_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_READY {FIRST}.int32_false_true has 3"),
        (false_true("START", "fp32_false_true: 1"),
         f"sequence batching control 'fp32_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_START {FIRST}.fp32_false_true has 1"),
        (false_true("READY", "bool_false_true: [true]"),
         f"sequence batching control 'bool_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_READY {FIRST}.bool_false_true has 1"),
        (false_true("CORRID", "data_type: TYPE_FP32"),
         f"unexpected data type for control CONTROL_SEQUENCE_CORRID {FIRST}.data_type. Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING"),
        (false_true("CORRID", ""),
         f"unexpected data type for control CONTROL_SEQUENCE_CORRID {FIRST}.data_type. Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING"),
        (false_true("CORRID", "data_type: TYPE_UINT64 int32_false_true: [0, 1]"),
         f"sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_CORRID {FIRST}.int32_false_true"),
        ("oldest { preferred_batch_size: 0 }",
         f"sequence batching preferred batch size must be positive {HERE}oldest.preferred_batch_size[0] is 0"),
        ("oldest { preferred_batch_size: [4, 9] }",
         f"sequence batching preferred batch size must be <= max batch size {HERE}oldest.preferred_batch_size[1] is 9, max_batch_size is 4"),
        ("direct { minimum_slot_utilization: 1.5 }",
         f"sequence batching minimum slot utilization must be in range (0.0, 1.0] {HERE}direct.minimum_slot_utilization is 1.5"),
        ("direct { minimum_slot_utilization: -0.5 }",
         f"sequence batching minimum slot utilization must be in range (0.0, 1.0] {HERE}direct.minimum_slot_utilization is -0.5"),
        ("direct { minimum_slot_utilization: nan }",
         f"sequence batching minimum slot utilization must be in range (0.0, 1.0] {HERE}direct.minimum_slot_utilization is nan"),
    ],
)  # fmt: skip
def test_a_sequence_batcher_is_refused(refusal, text, expected):
    assert refusal(MODEL + f"sequence_batching {{ {text} }}") == expected


PLAIN = {
    "max_sequence_idle_microseconds": 1_000_000,
    "control_input": [],
    "state": [],
    "iterative_sequence": False,
}
OLDEST = {
    "max_candidate_sequences": 0,
    "preferred_batch_size": [4],
    "max_queue_delay_microseconds": 0,
    "preserve_ordering": False,
}
DIRECT = {"max_queue_delay_microseconds": 0, "minimum_slot_utilization": 0}


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("", {}),
        ("max_sequence_idle_microseconds: 5", {"max_sequence_idle_microseconds": 5}),
        ("iterative_sequence: true", {"iterative_sequence": True}),
        ("oldest { }", {"oldest": OLDEST}),
        ("oldest { max_candidate_sequences: -2 }", {"oldest": OLDEST | {"max_candidate_sequences": -2}}),
        ("oldest { preferred_batch_size: [1, 4] }", {"oldest": OLDEST | {"preferred_batch_size": [1, 4]}}),
        ("direct { }", {"direct": DIRECT}),
        ("direct { minimum_slot_utilization: 1 }", {"direct": DIRECT | {"minimum_slot_utilization": 1}}),
        ('control_input { name: "C" }', {"control_input": [{"name": "C", "control": []}]}),
    ],
)  # fmt: skip
def test_a_sequence_batcher_is_accepted(settled, text, changes):
    assert (
        settled(MODEL + f"sequence_batching {{ {text} }}")["sequence_batching"] == PLAIN | changes
    )


@pytest.mark.parametrize("datatype", ["UINT64", "INT64", "UINT32", "INT32", "STRING"])
def test_one_tensor_may_have_several_controls_and_another_the_correlation_id(settled, datatype):
    kinds = [
        f"{{ kind: CONTROL_SEQUENCE_{kind} int32_false_true: [0, 1] }}"
        for kind in ("START", "END", "READY")
    ]
    text = control(*kinds) + false_true("CORRID", f"data_type: TYPE_{datatype}").replace(
        '"C"', '"D"'
    )

    found = settled(MODEL + f"sequence_batching {{ {text} }}")["sequence_batching"]["control_input"]

    assert [tensor["name"] for tensor in found] == ["C", "D"]
    assert found[1]["control"][0]["data_type"] == f"TYPE_{datatype}"


def test_sequences_need_no_batch_dimension(settled):
    text = MODEL.replace("max_batch_size: 4", "") + "sequence_batching { oldest { } }"

    assert settled(text)["sequence_batching"]["oldest"] == OLDEST | {"preferred_batch_size": []}


def state(initial="", dims="4", names='input_name: "i" output_name: "o"', data_type="TYPE_INT32"):
    return f"state {{ {names} data_type: {data_type} dims: {dims} {initial} }} "


def initial(data_type="TYPE_INT32", dims="4", name='name: "n"', data="zero_data: true"):
    return f"initial_state {{ data_type: {data_type} dims: {dims} {name} {data} }} "


STATE = HERE + "state[0]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (state(names='output_name: "o"'), f"state must specify 'input_name' {STATE}"),
        (state(names='input_name: "i"'), f"state must specify 'output_name' {STATE}"),
        (state(data_type="TYPE_INVALID"), f"state 'i' must specify 'data_type' {STATE}.data_type is TYPE_INVALID"),
        (state(data_type="77"), f"state 'i' must specify 'data_type' {STATE}.data_type is 77"),
        (state(dims="[ -1, 0 ]"),
         f"state 'i': a dimension must be integer >= 1, or -1 to indicate a variable-size dimension {STATE}.dims[1] is 0"),
        (state() * 2, f"State input name 'i' specified more than once {HERE}state[1], and state[0]"),
        (state() + state(names='input_name: "j" output_name: "o"'), f"State output name 'o' specified more than once {HERE}state[1], and state[0]"),
        (state(initial() * 2),
         f"initial_state field for state input 'i' must contain exactly one or zero element. Found '2' elements {STATE}.initial_state"),
        (state(initial(data_type="TYPE_FP32")),
         f"The data type used for 'initial_state' field of state 'i' does not match the state data type {STATE}.initial_state.data_type is TYPE_FP32, the state's is TYPE_INT32"),
        (state(initial(name="")), f"Field 'name' must be set when using initial_state for state input 'i' {STATE}.initial_state"),
        (state(initial(dims="[4, 1]")),
         f"Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input 'i'. 2 != 1 {STATE}.initial_state.dims is [4, 1], the state's are [4]"),
        (state(initial(dims="-1"), dims="-1"),
         f"'initial_state' field for state input name 'i' contains variable dimensions {STATE}.initial_state.dims[0] is -1"),
        (state(initial(dims="[1, 5]"), dims="[1, 4]"),
         f"'initial_state' dim for input name 'i' doesn't match 'state' dim description. 5 != 4 {STATE}.initial_state.dims[1] is 5"),
        (state(initial(dims="-7"), dims="-1"), f"'initial_state' dim for input name 'i' must be integer >= 0 {STATE}.initial_state.dims[0] is -7"),
        (state(initial(data="")), f"initial_state setting expects state 'i' to have state_data set {STATE}.initial_state has neither zero_data nor data_file"),
        (state(initial(data='data_file: ""')), f"initial_state setting expects state 'i' to have state_data set {STATE}.initial_state has neither zero_data nor data_file"),
    ],
)  # fmt: skip
def test_an_implicit_state_is_refused(refusal, text, expected):
    assert refusal(MODEL + f"sequence_batching {{ {text} }}") == expected


SHOWN = {
    "input_name": "i",
    "output_name": "o",
    "data_type": "TYPE_INT32",
    "dims": [4],
    "initial_state": [],
    "use_same_buffer_for_input_output": False,
    "use_growable_memory": False,
}
ZEROS = {"data_type": "TYPE_INT32", "dims": [5], "name": "n", "zero_data": True}


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (state(), {}),
        (state(dims="[ ]"), {"dims": []}),
        (state(dims="[ -1 ]"), {"dims": [-1]}),
        (state(initial(dims="5"), dims="-1"), {"dims": [-1], "initial_state": [ZEROS]}),
        (state(initial(dims="0"), dims="-1"), {"dims": [-1], "initial_state": [ZEROS | {"dims": [0]}]}),
        (state("use_growable_memory: true use_same_buffer_for_input_output: true"),
         {"use_same_buffer_for_input_output": True, "use_growable_memory": True}),
        (state(names='input_name: "x" output_name: "y"'), {"input_name": "x", "output_name": "y"}),
    ],
)  # fmt: skip
def test_an_implicit_state_is_accepted(settled, text, changes):
    found = settled(MODEL + f"sequence_batching {{ {text} }}")["sequence_batching"]["state"]

    assert found == [SHOWN | changes]
