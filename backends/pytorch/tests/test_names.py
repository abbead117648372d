"""Names of the configuration choose arguments and results."""

import numpy as np
import pytest

from core.errors import CoreError

X = np.array([[5, 7]], np.float32)
Y = np.array([[1, 2]], np.float32)
BATCH = "max_batch_size: 4 "


def pair(io, inputs, outputs):
    return (
        BATCH
        + io("input", *((name, "FP32", 2) for name in inputs))
        + io("output", *((name, "FP32", 2) for name in outputs))
    )


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        (("y", "x"), ("sum", "difference")),  # names of forward, in any order
        (("IN__1", "IN__0"), ("OUT__0", "OUT__1")),
        (("second__1", "first__0"), ("a__0", "b__1")),
    ],
)
def test_names_identify_arguments(serve, modules, io, inputs, outputs):
    model = serve(modules.Sum(), pair(io, inputs, outputs))

    found = model(**{inputs[0]: Y, inputs[1]: X})

    assert found[outputs[0]].tolist() == (X + Y).tolist()
    assert found[outputs[1]].tolist() == (X - Y).tolist()


def test_indices_of_outputs_may_come_in_any_order(serve, modules, io):
    model = serve(modules.Sum(), pair(io, ("x", "y"), ("OUT__1", "OUT__0")))

    assert model(x=X, y=Y)["OUT__0"].tolist() == (X + Y).tolist()


def test_other_names_use_the_order_of_the_configuration(serve, modules, io):
    model = serve(modules.Sum(), pair(io, ("b", "a"), ("plus", "minus")))

    found = model(b=X, a=Y)

    assert found["plus"].tolist() == (X + Y).tolist()
    assert found["minus"].tolist() == (X - Y).tolist()


def test_the_module_is_no_argument_for_any_name(serve, modules, io):
    model = serve(modules.Receiver(), pair(io, ("IN__0", "IN__1"), ("y",)))

    assert model(IN__0=X, IN__1=Y)["y"].tolist() == (X - Y).tolist()


def test_a_dict_is_passed_and_returned_by_its_keys(serve, modules, io):
    model = serve(modules.Keyed(), pair(io, ("b", "a"), ("sum", "difference")))

    found = model(a=X, b=Y)

    assert found["sum"].tolist() == (X + Y).tolist()
    assert found["difference"].tolist() == (X - Y).tolist()


def test_a_list_of_tensors_is_split(serve, modules, io):
    model = serve(modules.Listed(), pair(io, ("x",), ("OUTPUT__0", "OUTPUT__1")))

    assert model(x=X)["OUTPUT__1"].tolist() == (X + 2).tolist()


def test_an_optional_input_takes_the_default_of_forward(serve, modules, io):
    model = serve(
        modules.Scaled(),
        io("input", ("x", "FP32", 2), ("factor", "FP32", 1, "optional: true"))
        + io("output", ("y", "FP32", 2)),
    )

    assert model(x=X[0])["y"].tolist() == (X[0] * 10).tolist()
    assert model(x=X[0], factor=np.array([3], np.float32))["y"].tolist() == (X[0] * 3).tolist()


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        (("x",), "configuration expects 1 inputs, model provides 2: x, y; config.pbtxt lacks y"),
        (("x", "y", "z"), "configuration expects 3 inputs, model provides 2: x, y"),
        (("a__0", "b__7"), "'b__7' would be number 7"),
        (("a__0", "b__0"), "config.pbtxt lacks y"),
    ],
)
def test_an_error_for_inputs_that_do_not_fit_lists_the_inputs(serve, modules, io, inputs, text):
    with pytest.raises(CoreError) as caught:
        serve(modules.Sum(), pair(io, inputs, ("sum",)))

    assert "unable to load model 'm'" in caught.value.message
    assert text in caught.value.message


def test_an_unknown_output_is_refused_like_in_triton(serve, modules, io):
    model = serve(modules.Sum(), pair(io, ("x", "y"), ("OUT__0", "OUT__2")))

    with pytest.raises(
        CoreError,
        match=r"^The output OUT__2 in the model configuration refers to an output index which doesn't "
        "exist. This model has 2 outputs",
    ):
        model(x=X, y=Y)


def test_a_datatype_that_is_not_configured_is_refused_like_in_triton(serve, modules, io):
    config = io("input", ("x", "FP32", 2)) + io("output", ("OUTPUT__0", "INT32", 2))
    model = serve(modules.Identity(), config)

    with pytest.raises(
        CoreError,
        match=r"^configuration expects datatype TYPE_INT32 for output 'OUTPUT__0', model provides TYPE_FP32",
    ):
        model(x=X[0])


def test_a_result_that_is_no_tensor_is_an_error(serve, modules, io):
    model = serve(modules.Number(), io("input", ("x", "FP32", 2)) + io("output", ("y", "INT64", 1)))

    with pytest.raises(CoreError, match=r"'y' must be of type Tensor or List\[str\].* gave a int"):
        model(x=X[0])


def test_two_names_of_one_result_are_refused(serve, modules, io):
    with pytest.raises(CoreError, match="have the same index"):
        serve(modules.Sum(), pair(io, ("x", "y"), ("a__0", "b__0")))
