"""Configurations completed from the tensors of a file, and compared with them."""

import itertools
import logging

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core import dtypes
from core.backend import Backend, ModelInstance
from core.config import parse_text
from core.errors import CoreError, Kind
from core.file_signature import (
    FileSignature,
    FileTensor,
    check_fields,
    is_complete,
    outputs_without_dims,
)

BACKEND = Backend(instance=ModelInstance)
SIZES = (1, 2, 3)


class Tensor(FileTensor):
    carried = {"float": dtypes.FP32, "int": dtypes.INT32, "byte": dtypes.UINT8}


def config_of(text=""):
    return parse_text(f'name: "m" {text}', "config.pbtxt")


def signature_of(inputs, outputs=None, **fields):
    """A signature of name → dims, or name → (type, dims)."""

    def tensors(found):
        typed = {
            name: each if each and each[0] == "int" else ("float", each)
            for name, each in found.items()
        }
        return {name: Tensor(name, *each) for name, each in typed.items()}

    return FileSignature(tensors(inputs), tensors(outputs or {}), **fields)


def filled(signature, text="", backend=BACKEND):
    config = config_of(text)
    signature.fill(config, backend, "plug")
    return config


def dims_of(entries):
    return {io.name: list(io.dims) for io in entries}


def test_an_empty_configuration_gets_all_of_the_file(caplog):
    config = filled(signature_of({"x": (-1, 3), "n": ("int", (-1,))}, {"y": (-1, 2, -1)}))

    assert dims_of(config.input) == {"x": [3], "n": [1]}
    assert dims_of(config.output) == {"y": [2, -1]}
    assert [io.data_type for io in config.input] == [dtypes.FP32.number, dtypes.INT32.number]
    assert config.max_batch_size == 4 and config.HasField("dynamic_batching")
    assert "autofilled max_batch_size to 4" in caplog.text


@pytest.mark.parametrize(("setting", "rows"), [("0", 1), ("1", 1), ("16", 16)])
def test_the_batch_is_that_of_the_server(setting, rows):
    backend = Backend(instance=ModelInstance)
    backend.config = {"default-max-batch-size": setting}

    config = filled(signature_of({"x": (-1,)}, {"y": (-1,)}), backend=backend)

    assert config.max_batch_size == rows
    assert config.HasField("dynamic_batching") == (rows > 1)


def test_a_file_without_a_batch_gives_whole_shapes():
    config = filled(signature_of({"x": (-1, 3)}, {"y": ()}))

    assert (config.max_batch_size, config.HasField("dynamic_batching")) == (0, False)
    assert (dims_of(config.input), dims_of(config.output)) == ({"x": [-1, 3]}, {"y": [1]})


def test_what_the_configuration_says_stays():
    text = """max_batch_size: 8 input { name: "x" dims: 3 }
        sequence_batching { state { input_name: "old" output_name: "new" data_type: TYPE_FP32 dims: 5 } }"""
    signature = signature_of({"x": (-1, -1), "old": (-1, 5)}, {"y": (-1, 2), "new": (-1, 5)})

    config = filled(signature, text)

    assert config.max_batch_size == 8 and not config.HasField("dynamic_batching")
    assert (dims_of(config.input), dims_of(config.output)) == ({"x": [3]}, {"y": [2]})


@pytest.mark.parametrize(
    ("text", "batch"),
    [
        ('input { name: "x" dims: [ -1, 3 ] }', 0),
        ('output { name: "y" dims: [ 7 ] }', 0),
        ('output { name: "y" dims: [ 1 ] }', 4),  # one number for each row
        ('output { name: "y" dims: [ 1 ] reshape { } }', 4),
        ('input { name: "x" dims: [ 6 ] reshape { shape: [ 2, 3 ] } }', 0),
        ('input { name: "x" dims: [ 3 ] }', 4),
        ('input { name: "x" dims: [ 3, 1 ] reshape { shape: [ 3 ] } }', 4),
        ('sequence_batching { state { input_name: "x" output_name: "z" dims: [ 2, 3 ] } }', 0),
    ],
)
def test_dims_with_the_batch_are_those_of_a_model_without_max_batch_size(text, batch):
    signature = signature_of({"x": (-1, 3)}, {"y": (-1,), "z": (-1, 3)})

    assert filled(signature, text).max_batch_size == batch


def test_a_described_model_gets_at_most_a_scheduler(caplog):
    text = """input { name: "x" data_type: TYPE_FP32 dims: 3 }
        output { name: "y" data_type: TYPE_FP32 dims: 3 }"""
    signature = signature_of({"x": (-1, 3)}, {"y": (-1, 3)})

    assert filled(signature, text) == config_of(text)
    assert filled(signature, f"max_batch_size: 2 {text}").HasField("dynamic_batching")
    assert not filled(signature_of({"x": (5, 3)}, {}), f"max_batch_size: 2 {text}").HasField(
        "dynamic_batching"
    )
    assert caplog.messages == []
    assert is_complete(config_of(text)) and is_complete(config_of(f"max_batch_size: 1 {text}"))
    assert not is_complete(config_of(f"max_batch_size: 2 {text}"))
    assert is_complete(config_of(f"max_batch_size: 2 dynamic_batching {{ }} {text}"))
    assert not is_complete(config_of())


def test_unknown_outputs_stay_as_they_are():
    signature = signature_of({"x": (2,)}, outputs_known=False)

    config = filled(signature, 'output { name: "any" }')
    signature.check(config)

    assert dims_of(config.input) == {"x": [2]}
    assert config.output[0].data_type == 0


# Whole shapes that both dims allow, one by one: what `check` has to find.


def allows(dims, shape):
    return len(dims) == len(shape) and all(
        dim in (-1, size) for dim, size in zip(dims, shape, strict=True)
    )


DIMS = st.lists(st.sampled_from([-1, *SIZES]), max_size=3).map(tuple)


@given(DIMS, DIMS, st.booleans())
@example((), (), True)
@example((), (1,), False)
@example((), (-1,), False)
@example((1,), (), False)
def test_dims_fit_if_a_shape_has_both(file, asked, batches):
    shapes = [shape for rank in range(4) for shape in itertools.product(SIZES, repeat=rank)]
    # To clients and in a configuration, a scalar is (1,) or ().
    expected = (
        asked in ((), (1,))
        if file == ()
        else any(allows(file, shape) and allows(asked, shape) for shape in shapes)
    )
    signature = signature_of({"x": (-1, *file) if batches else file})
    described = f"reshape {{ shape: {list(asked)} }}" if asked else "reshape { }"
    config = config_of(
        f"max_batch_size: {4 * batches} "
        f'input {{ name: "x" data_type: TYPE_FP32 dims: [ 1 ] {described} }}'
    )

    if expected:
        signature.check(config)
        return
    with pytest.raises(CoreError) as caught:
        signature.check(config)
    text = f"tensor 'x': the model has dims {list(file or (1,))}, the configuration {list(asked)}"
    assert text + ", both without the batch" * batches == caught.value.message.partition(", ")[2]


@given(
    st.lists(st.tuples(DIMS, st.sampled_from(list(Tensor.carried))), min_size=1, max_size=3),
    st.lists(st.tuples(DIMS, st.sampled_from(list(Tensor.carried))), min_size=1, max_size=3),
    st.booleans(),
)
def test_a_completed_configuration_fits_its_file(inputs, outputs, batches):
    def tensors(found, letter):
        named = {f"{letter}{i}": each for i, each in enumerate(found)}
        return {
            name: Tensor(name, type_, (-1, *dims) if batches else dims)
            for name, (dims, type_) in named.items()
        }

    signature = FileSignature(tensors(inputs, "x"), tensors(outputs, "y"))
    logging.getLogger("core").disabled = True
    try:
        config = filled(signature)
    finally:
        logging.getLogger("core").disabled = False

    signature.check(config)
    assert [io.name for io in (*config.input, *config.output)] == [
        each.name for each in signature.all
    ]
    assert is_complete(config)


STATE = 'sequence_batching { state { input_name: "old" output_name: "new" %s } }'
CONTROL = 'sequence_batching { control_input { name: "start" control { %s } } }'


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", None),
        (
            'input { name: "z" }',
            "unexpected inference input 'z', allowed inputs are: old, s, start, x",
        ),
        ('output { name: "z" }', "unexpected inference output 'z', allowed outputs are: new, y"),
        (
            'output { name: "y" data_type: TYPE_FP64 dims: 3 }',
            "expects datatype TYPE_FP64 for 'y', model provides TYPE_FP32",
        ),
        (STATE % "data_type: TYPE_FP32 dims: 3", None),
        (STATE % "data_type: TYPE_FP32 dims: -1", None),
        (
            STATE % "data_type: TYPE_FP16 dims: 3",
            "expects datatype TYPE_FP16 for 'old', model provides TYPE_FP32",
        ),
        (
            STATE % "data_type: TYPE_FP32 dims: 4",
            r"'old': the model has dims \[3\], the configuration \[4\], both without the batch",
        ),
        (STATE % "data_type: TYPE_FP32 dims: [ 2, 3 ]", r"the configuration \[2, 3\]"),
        (STATE % "data_type: TYPE_FP32", r"has dims \[3\], the configuration \[\]"),
        (
            STATE.replace("new", "later") % "data_type: TYPE_FP32 dims: 3",
            "inference output 'later'",
        ),
        (STATE.replace("old", "s") % "data_type: TYPE_FP32", r"'new': .* the configuration \[\]"),
        (CONTROL % "kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ]", None),
        (CONTROL % "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT32", None),
        (
            CONTROL % "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING",
            "expects datatype TYPE_STRING for 'start', model provides TYPE_INT32",
        ),
        (
            CONTROL % "kind: CONTROL_SEQUENCE_END bool_false_true: [ false, true ]",
            "expects datatype TYPE_BOOL for 'start', model provides TYPE_INT32",
        ),
        (
            CONTROL.replace("start", "s")
            % "kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ]",
            None,
        ),
        (
            CONTROL.replace("start", "x")
            % "kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ]",
            r"'x': the model has dims \[3\], the configuration \[1\]",
        ),
    ],
)
def test_everything_in_a_configuration_is_compared(text, error):
    inputs = {"x": (-1, 3), "old": (-1, 3), "start": ("int", (-1, 1)), "s": (-1,)}
    signature = signature_of(inputs, {"y": (-1, 3), "new": (-1, 3)})
    config = config_of(f"max_batch_size: 4 {text}")
    for name in inputs:
        if f'name: "{name}"' not in text:  # else it is a state, a control, or described by the text
            config.input.add(
                name=name,
                data_type=(dtypes.INT32 if name == "start" else dtypes.FP32).number,
                dims=[3] if name in ("x", "old") else [1],
            )

    if error is None:
        signature.check(config)
        return
    with pytest.raises(CoreError, match=error) as caught:
        signature.check(config)
    assert caught.value.kind is Kind.INVALID


def test_inputs_that_are_missing_are_named():
    with pytest.raises(
        CoreError, match=r"expects 1 inputs, model provides 2; config.pbtxt lacks z"
    ):
        signature_of({"x": (3,), "z": (3,)}).check(config_of('input { name: "x" }'))


def test_the_caller_may_compare_dims_itself():
    config = config_of('input { name: "x" data_type: TYPE_FP32 dims: 9 }')
    signature_of({"x": (3,)}).check(config, loose=["x"])

    with pytest.raises(CoreError, match="TYPE_INT32"):
        signature_of({"x": ("int", (3,))}).check(config, loose=["x"])


def test_a_type_that_requests_cannot_carry_is_an_error_with_those_that_they_can():
    signature = FileSignature({"x": Tensor("x", "complex", (3,))}, {})
    text = (
        "model 'm': 'x' is of type complex, which cannot be sent to clients; convert it to one of"
    )

    for act in (filled, lambda found: found.check(config_of('input { name: "x" }'))):
        with pytest.raises(CoreError, match=f"^{text} FP32, INT32, UINT8$") as caught:
            act(signature)
        assert caught.value.kind is Kind.UNSUPPORTED


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('input { name: "x" optional: true }', "'optional' of input 'x' is not for Plug models"),
        ('input { name: "x" allow_ragged_batch: true }', "'allow_ragged_batch' of input 'x'"),
        ("batch_input { }", "batch_input and batch_output are not for Plug models"),
        ("batch_output { }", "batch_input and batch_output are not for Plug models"),
    ],
)
def test_fields_that_a_backend_does_not_have_are_named(text, error):
    check_fields(config_of('input { name: "x" }'), "Plug")
    with pytest.raises(CoreError, match=f"{error}.*; remove .* from config.pbtxt") as caught:
        check_fields(config_of(text), "Plug")
    assert caught.value.kind is Kind.UNSUPPORTED


def test_outputs_without_dims_are_those_with_an_empty_shape_for_the_model():
    config = config_of(
        """output { name: "scalar" dims: 1 reshape { } } output { name: "one" dims: 1 }
        output { name: "vector" dims: 1 reshape { shape: 1 } }
        sequence_batching {
          state { input_name: "a" output_name: "next_a" }
          state { input_name: "b" output_name: "next_b" dims: 1 }
        }"""
    )

    assert outputs_without_dims(config) == {"scalar", "next_a"}
