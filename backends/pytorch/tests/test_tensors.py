"""Tensors of every datatype and every kind of shape are returned correctly, like in torch."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core import dtypes
from core.errors import CoreError
from core.request import InferenceRequest
from core.tensor import Tensor

NUMBERS = {
    "BOOL": np.array([[True, False, True]]),
    "UINT8": np.array([[0, 1, 255]], np.uint8),
    "UINT16": np.array([[0, 1, 65535]], np.uint16),
    "UINT32": np.array([[0, 1, 2**32 - 1]], np.uint32),
    "UINT64": np.array([[0, 1, 2**64 - 1]], np.uint64),
    "INT8": np.array([[-128, 0, 127]], np.int8),
    "INT16": np.array([[-(2**15), 0, 2**15 - 1]], np.int16),
    "INT32": np.array([[-(2**31), 0, 2**31 - 1]], np.int32),
    "INT64": np.array([[-(2**63), 0, 2**63 - 1]], np.int64),
    "FP16": np.array([[-1.5, 0, np.inf]], np.float16),
    "FP32": np.array([[-1.5, 0, np.inf]], np.float32),
    "FP64": np.array([[-1.5, 0, np.inf]], np.float64),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_comes_back_unchanged(serve, modules, io, name):
    x = NUMBERS[name]

    model = serve(
        modules.Identity(),
        "max_batch_size: 2 " + io("input", ("x", name, 3)) + io("output", ("y", name, 3)),
    )

    found = model(x=x)["y"]
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, x)


def test_models_compute_with_bfloat16(serve, modules, io):
    config = io("input", ("x", "BF16", -1), ("y", "BF16", -1)) + io("output", ("s", "BF16", -1))
    model = serve(modules.Sum(), config)
    bits = np.array([0x3F80, 0xC000, 0x0000], np.uint16)  # 1, -2, 0

    async def act(server):
        tensors = {n: Tensor(n, dtypes.BF16, bits.shape, raw=bits.tobytes()) for n in "xy"}
        answer.append(await server.models.infer(InferenceRequest("m", tensors)))

    answer = []
    model.served.while_asking([], act)

    found = answer[0].output("s")
    assert found.dtype is dtypes.BF16
    assert found.array.tolist() == [0x4000, 0xC080, 0x0000]  # 2, -4, 0


@pytest.fixture(scope="module")
def network(modules):
    torch.manual_seed(3)
    return modules.Convolutions().eval()


def test_any_number_of_rows_gets_the_result_of_torch(serve, network, io):
    """The rows are in one request or in several, and their shapes differ between runs."""
    config = "max_batch_size: 8 dynamic_batching { } " + io("input", ("x", "FP32", "1, -1, -1"))
    model = serve(network, config + io("output", ("y", "FP32", -1)))
    sizes = st.lists(st.integers(1, 8), min_size=1, max_size=5)

    # No deadline: the source distribution has these tests, without the top folder's conftest.py.
    @settings(
        max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(sizes, st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**31))
    def check(rows, height, width, seed):
        random = np.random.default_rng(seed)
        inputs = [random.standard_normal((n, 1, height, width)).astype(np.float32) for n in rows]

        answers = model.together(*({"x": each} for each in inputs))

        for each, answer in zip(inputs, answers, strict=True):
            with torch.no_grad():
                expected = network(torch.from_numpy(each)).numpy()
            np.testing.assert_allclose(answer["y"], expected, rtol=1e-4, atol=1e-5)

    check()


def test_clients_see_a_scalar_as_one_element(serve, modules, io):
    model = serve(modules.Total(), io("input", ("x", "FP32", -1)) + io("output", ("y", "FP32", 1)))

    assert model(x=np.array([1, 2, 4], np.float32))["y"].tolist() == [7]


def test_text_goes_to_a_list_of_str_and_comes_back(serve, modules, io):
    model = serve(
        modules.Upper(),
        io("input", ("words", "STRING", -1))
        + io("output", ("up", "STRING", -1), ("n", "INT64", -1)),
    )

    found = model(words=np.array([b"green", b"", b"a b"], object))

    assert found["up"].tolist() == [b"GREEN", b"", b"A B"]
    assert found["n"].tolist() == [5, 0, 3]
    assert model(words=np.array([], object))["up"].tolist() == []


def test_bytes_that_are_not_utf_8_fail_their_request_only(serve, modules, io):
    model = serve(
        modules.Echo(),
        "max_batch_size: 4 dynamic_batching { } "
        + io("input", ("words", "STRING", 1))
        + io("output", ("o", "STRING", 1)),
    )
    good, bad = np.array([[b"good"]], object), np.array([[b"\xff"]], object)

    answers = model.together({"words": good}, {"words": bad}, {"words": good})

    assert isinstance(answers[1], CoreError)
    assert "are no UTF-8" in answers[1].message
    assert answers[0]["o"].tolist() == answers[2]["o"].tolist() == [[b"good"]]


@pytest.mark.parametrize("config", ["max_batch_size: 4 ", ""])
def test_text_of_several_dimensions_is_refused_at_the_load(serve, modules, io, config):
    with pytest.raises(CoreError, match=r"a List\[str\] has 1 dimension: input 'words'"):
        serve(
            modules.Echo(),
            config + io("input", ("words", "STRING", "2, 3")) + io("output", ("o", "STRING", -1)),
        )


def test_numbers_for_a_list_of_str_are_refused_at_the_load(serve, modules, io):
    with pytest.raises(
        CoreError, match=r"'words' of forward is a List\[str\].*must be TYPE_STRING"
    ):
        serve(
            modules.Echo(), io("input", ("words", "FP32", -1)) + io("output", ("o", "STRING", -1))
        )


def test_only_requested_outputs_are_returned(serve, modules, io):
    model = serve(
        modules.Sum(),
        io("input", ("x", "FP32", 1), ("y", "FP32", 1))
        + io("output", ("a", "FP32", 1), ("b", "FP32", 1)),
    )
    x = np.array([3], np.float32)

    assert {n: a.tolist() for n, a in model(["b"], x=x, y=x).items()} == {"b": [0]}
    assert {n: a.tolist() for n, a in model(["b", "a"], x=x, y=x).items()} == {"a": [6], "b": [0]}
    assert set(model(x=x, y=x)) == {"a", "b"}


def test_an_array_with_negative_strides_is_accepted(serve, modules, io):
    config = io("input", ("x", "FP32", 3)) + io("output", ("y", "FP32", 3))
    backwards = np.array([1, 2, 3], np.float32)[::-1]

    for module in (modules.Identity(), modules.InPlace()):
        model = serve(module, config)
        answer = []

        async def act(server, answer=answer):
            request = InferenceRequest("m", {"x": Tensor.of("x", backwards)})
            answer.append(await server.models.infer(request))

        model.served.while_asking([], act)

        assert answer[0].output("y").array[1:].tolist() == [2, 1]


@pytest.mark.parametrize("inference", ["true", "false"])
def test_results_that_numpy_cannot_view_are_converted(serve, modules, io, inference):
    config = io("input", ("x", "FP32", 2)) + io("output", ("w", "FP32", 1), ("y", "FP32", 2))
    mode = f'parameters {{ key: "INFERENCE_MODE" value: {{ string_value: "{inference}" }} }} '
    model = serve(modules.Weight(), config + mode)

    answer = model(x=np.array([1, 2], np.float32))

    assert {name: each.tolist() for name, each in answer.items()} == {"w": [1], "y": [-1, -2]}


def test_a_dict_of_results_is_returned_by_its_keys(serve, modules, io):
    config = io("input", ("x", "FP32", 1)) + io("output", ("twice", "FP32", 1), ("half", "FP32", 1))

    answer = serve(modules.Named(), config)(x=np.array([4], np.float32))

    assert {name: each.tolist() for name, each in answer.items()} == {"twice": [8], "half": [2]}


def test_hooks_that_were_saved_with_a_module_run(serve, modules, io):
    model = serve(modules.Hooked(), io("input", ("x", "FP32", 1)) + io("output", ("y", "FP32", 1)))

    assert model(x=np.array([4], np.float32))["y"].tolist() == [5]


def test_a_model_that_writes_to_its_input_does_not_write_to_the_message(serve, modules, io):
    model = serve(
        modules.InPlace(),
        "max_batch_size: 4 " + io("input", ("x", "FP32", 2)) + io("output", ("y", "FP32", 2)),
    )
    raw = np.array([[1, 2]], np.float32).tobytes()

    async def act(server):
        tensor = Tensor("x", dtypes.FP32, (1, 2), raw=raw)
        answer.append(await server.models.infer(InferenceRequest("m", {"x": tensor})))

    answer = []
    model.served.while_asking([], act)

    assert answer[0].output("y").array.tolist() == [[101, 2]]
    assert np.frombuffer(raw, np.float32).tolist() == [1, 2]


def test_an_answer_does_not_change_when_the_model_runs_again(serve, modules, io):
    model = serve(modules.Counter(), io("input", ("x", "FP32", 1)) + io("output", ("n", "FP32", 1)))
    x = np.zeros(1, np.float32)

    answers = [model(x=x)["n"] for _ in range(3)]

    assert [each.tolist() for each in answers] == [[1], [2], [3]]


def test_an_empty_list_of_text_is_an_answer(serve, modules, io):
    config = io("input", ("words", "STRING", -1)) + io("output", ("o", "STRING", -1))

    answer = serve(modules.Echo(), config)(words=np.empty(0, object))

    assert answer["o"].shape == (0,)


def test_a_failed_run_has_the_text_of_torch(serve, modules, io):
    model = serve(
        modules.Pick(),
        "max_batch_size: 4 "
        + io("input", ("x", "FP32", 3), ("index", "INT64", 1))
        + io("output", ("y", "FP32", 3), ("picked", "FP32", 1)),
    )

    text = r"(?s)^PyTorch execute failure: .*out of bounds.*\(model 'm'\)"
    with pytest.raises(CoreError, match=text) as caught:
        model(x=np.ones((1, 3), np.float32), index=np.array([[9]], np.int64))

    assert "frame #" not in caught.value.message
