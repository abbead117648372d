"""Functions become models."""

import asyncio
import functools
import threading
from collections import namedtuple

import numpy as np
import pytest
from flow.in_process.conftest import PATIENCE_S, ROW, Asking, until

import core
from core import dtypes
from frontends.in_process import Spec

X = ROW["inputs"]
Y = ROW["outputs"]


def refused(bind, *arguments, **more):
    with pytest.raises(core.CoreError) as refusal:
        bind(*arguments, **more)
    assert refusal.value.kind is core.Kind.INVALID
    return refusal.value.message


@pytest.mark.parametrize(
    "result",
    [
        lambda x: {"y": x, "z": -x},
        lambda x: {"z": -x, "y": x},
        lambda x: (x, -x),
        lambda x: [x, -x],
    ],
)
def test_a_function_returns_a_dict_a_tuple_or_a_list(server, x, result):
    server.bind("two", result, inputs=X, outputs={"y": ("FP32", [-1]), "z": ("FP32", [-1])})

    answer = server.infer("two", {"x": x})

    np.testing.assert_array_equal(answer["y"], x)
    np.testing.assert_array_equal(answer["z"], -x)


def test_numbers_of_python_take_the_datatype_of_the_output(server, x):
    server.bind("sum", lambda x: {"y": [float(x.sum())]}, inputs=X, outputs={"y": ("FP32", [1])})
    server.bind("list", lambda x: [x.tolist()], **ROW)

    assert server.infer("sum", {"x": x})["y"].dtype == np.float32
    np.testing.assert_array_equal(server.infer("list", {"x": x})["y"], x)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (lambda x: None, "returned a NoneType"),
        (lambda x: {"q": x}, "returned a dict of 'q'; the outputs are 'y'"),
        (lambda x: (x, x), "returned a tuple of 2; the outputs are 'y'"),
        (lambda x: x.astype(np.float64), "output 'y' as FP64, which should be FP32"),
        (lambda x: x[:, None], r"output 'y' with shape [4, 1], which should be [-1]"),
        (lambda x: "text", "output 'y' as 'text'"),
    ],
)
def test_an_invalid_result_is_an_error_with_the_reason(server, x, result, text):
    server.bind("wrong", result, **ROW)

    with pytest.raises(core.CoreError) as failure:
        server.infer("wrong", {"x": x})

    assert failure.value.kind is core.Kind.INTERNAL
    assert "the function of model 'wrong'" in failure.value.message
    assert text in failure.value.message


def test_a_batch_must_keep_its_rows(server, x):
    server.bind("shrink", lambda x: x[:1], batching=True, **ROW)

    with pytest.raises(core.CoreError, match=r"shape \[1, 4\], which should be \[2, -1\]"):
        server.infer("shrink", {"x": np.stack([x, x])})


def test_an_exception_of_a_function_reaches_the_caller_and_the_log(server, x, caplog):
    def fail(x):
        raise ZeroDivisionError("no luck")

    server.bind("fail", fail, **ROW)

    with pytest.raises(core.CoreError, match="model 'fail' failed: ZeroDivisionError: no luck"):
        server.infer("fail", {"x": x})

    assert "in fail\n    raise ZeroDivisionError" in caplog.text


def test_a_core_error_of_a_function_keeps_its_kind_and_is_not_logged(server, x, caplog):
    def refuse(x):
        raise core.CoreError(core.Kind.INVALID, "not this one")

    server.bind("refuse", refuse, **ROW)

    with pytest.raises(core.CoreError, match="not this one") as refusal:
        server.infer("refuse", {"x": x})

    assert refusal.value.kind is core.Kind.INVALID
    assert "not this one" not in caplog.text


def test_an_input_with_a_default_may_be_left_out(server, x):
    def add(x, other=None):
        return x if other is None else x + other

    server.bind("add", add, inputs={**X, "other": ("FP32", [-1])}, outputs=Y)

    np.testing.assert_array_equal(server.infer("add", {"x": x})["y"], x)
    np.testing.assert_array_equal(server.infer("add", {"x": x, "other": x})["y"], 2 * x)


def test_functions_without_keywords_get_the_inputs_in_their_order(server, x):
    inputs = {"a": ("FP32", [-1]), "b": ("FP32", [-1])}
    server.bind("subtract", np.subtract, inputs=inputs, outputs=Y)

    np.testing.assert_array_equal(server.infer("subtract", {"b": x, "a": 3 * x})["y"], 2 * x)


def test_an_example_defines_inputs_and_outputs(server):
    def parts(x, text):
        return {"size": np.array([[each.size] for each in x], np.int64), "text": text}

    example = {"x": np.zeros((2, 3), np.float32), "text": [["a"], ["b"]]}
    server.bind("parts", parts, example=example, batching=True)

    found = server.metadata("parts")
    assert found["inputs"] == [
        {"name": "x", "datatype": "FP32", "shape": [-1, 3]},
        {"name": "text", "datatype": "BYTES", "shape": [-1, 1]},
    ]
    assert found["outputs"] == [
        {"name": "size", "datatype": "INT64", "shape": [-1, 1]},
        {"name": "text", "datatype": "BYTES", "shape": [-1, 1]},
    ]
    assert server.infer("parts", example)["size"].tolist() == [[3], [3]]


def test_outputs_of_an_example_without_names_are_called_y(server, x):
    server.bind("one", lambda x: x, example={"x": x})
    server.bind("two", lambda x: (x, x), example={"x": x})

    assert list(server.infer("one", {"x": x})) == ["y"]
    assert list(server.infer("two", {"x": x})) == ["y0", "y1"]


def test_specs_are_written_in_several_ways(server):
    Tensor = namedtuple("Tensor", "name dtype shape optional")  # as PyTriton has it

    forms = [
        {"a": ("TYPE_FP16", [2]), "b": (bytes, [-1])},
        {"a": (np.float16, (2,)), "b": (np.bytes_, [-1])},
        {"a": Spec(dtypes.FP16, (2,)), "b": Spec(np.dtype("S4"), (-1,))},
        [Tensor("a", np.float16, (2,), False), Tensor("b", bytes, (-1,), None)],
    ]
    for form in forms:
        server.bind("m", lambda a, b: a, inputs=form, outputs={"y": ("FP16", [2])})

        assert server.metadata("m")["inputs"] == [
            {"name": "a", "datatype": "FP16", "shape": [2]},
            {"name": "b", "datatype": "BYTES", "shape": [-1]},
        ]


def test_tensors_without_a_name_are_numbered(server):
    Tensor = namedtuple("Tensor", "name dtype shape")

    server.bind(
        "m",
        lambda **inputs: next(iter(inputs.values())),
        inputs=[Tensor(None, np.int8, (1,)), Tensor(None, np.int8, (1,))],
        outputs=[Tensor(None, np.int8, (1,))],
    )

    assert [each["name"] for each in server.metadata("m")["inputs"]] == ["INPUT_1", "INPUT_2"]
    assert [each["name"] for each in server.metadata("m")["outputs"]] == ["OUTPUT_1"]


def test_bfloat16_comes_and_goes_as_bit_patterns(server):
    spec = ("BF16", [-1])
    server.bind("same", lambda x: x + 1, inputs={"x": spec}, outputs={"y": spec})
    bits = core.Tensor.of("x", np.array([1, 2], np.uint16), dtypes.BF16)

    answer = server.infer("same", {"x": bits})

    assert answer["y"].tolist() == [2, 3]
    assert answer.tensor("y").dtype is dtypes.BF16


def test_an_invalid_function_is_refused(server, x):
    def bind(function=lambda x: x, **more):
        return refused(server.bind, "m", function, **{**ROW, **more})

    assert "has no parameter 'q'; its parameters are x" in bind(inputs={"q": ("FP32", [1])})
    assert "needs 'z', which is none of the inputs x" in bind(lambda x, z: x)
    assert "has no inputs" in bind(inputs=None)
    assert "has no outputs" in bind(outputs=None)
    assert "datatype 'FP31'" in bind(inputs={"x": ("FP31", [1])})
    assert "give datatype and shape" in bind(inputs={"x": "FP32"})
    assert "shape 'ab'" in bind(inputs={"x": ("FP32", "ab")})
    assert "name, dtype and shape" in bind(inputs=[("FP32", [1])])
    assert "placement='gpu' is none of" in bind(placement="gpu")
    assert "shape '4'" in bind(inputs={"x": ("FP32", "4")})
    assert "shape [1.5]" in bind(inputs={"x": ("FP32", [1.5])})
    assert "need batching=True" in bind(max_batch_size=3)
    assert "max_batch_size=0: give 1 or more" in bind(batching=True, max_batch_size=0)
    assert "instances=0: give 1 or more" in bind(instances=0)
    assert "the name 3: give a str" in refused(server.bind, 3, lambda x: x, **ROW)
    assert "give a function" in bind(3)
    assert "give a function" in bind([])
    assert "leave one out" in bind([lambda x: x, lambda x: x], instances=3)
    assert "different kinds" in bind([lambda x: x, asyncio.sleep])
    assert "which bind says in another way" in bind(config={"input": []})
    assert "max_batch_siz" in bind(config={"max_batch_siz": 2})
    assert "no dimension of rows" in bind(batching=True, example={"x": np.array(1, np.float32)})
    assert server.index() == []


def test_a_configuration_that_validation_refuses_binds_no_function(server):
    text = refused(server.bind, "m", lambda x: x, inputs={"x": ("FP32", [0])}, outputs=Y)

    assert "load failed for model 'm'" in text
    assert server.index() == []
    assert not server.ready("m")


def test_each_function_of_a_list_is_a_separate_instance(server, x):
    meeting = threading.Barrier(2, timeout=PATIENCE_S)
    threads = {}

    def meet(number, x):
        threads[number] = threading.current_thread()
        meeting.wait()
        return np.full_like(x, number)

    server.bind("meet", [functools.partial(meet, 1), functools.partial(meet, 2)], **ROW)
    asking = [Asking(lambda: server.infer("meet", {"x": x})["y"][0]) for _ in range(2)]

    assert sorted(each.result for each in asking) == [1, 2]
    assert threads[1] is not threads[2]


def test_a_function_that_is_bound_again_takes_the_place_of_the_first(server, gate, x):
    server.bind("m", gate, **ROW)
    first = Asking(lambda: server.infer("m", {"x": x})["y"])
    assert gate.began.wait(PATIENCE_S)

    server.bind("m", lambda x: -x, **ROW)
    np.testing.assert_array_equal(server.infer("m", {"x": x})["y"], -x)
    gate.open()

    np.testing.assert_array_equal(first.result, x)


def test_a_function_that_cannot_take_the_place_leaves_the_first(server, x):
    server.bind("m", lambda x: x, **ROW)

    refused(server.bind, "m", lambda x: -x, inputs={"x": ("FP32", [0])}, outputs=Y)

    np.testing.assert_array_equal(server.infer("m", {"x": x})["y"], x)
    server.bind("m", lambda x: -x, **ROW)
    np.testing.assert_array_equal(server.infer("m", {"x": x})["y"], -x)


def test_an_unbound_function_is_not_found(server, x):
    server.bind("m", lambda x: x, **ROW)

    server.unbind("m")

    with pytest.raises(core.CoreError, match="Request for unknown model"):
        server.infer("m", {"x": x})
    until(lambda: server.index() == [])  # when the last of its requests is over
    with pytest.raises(core.CoreError, match=r"no function is bound as 'm' \(bound: none\)"):
        server.unbind("m")


def test_unbinding_finishes_accepted_requests(server, gate, x):
    server.bind("m", gate, **ROW)
    asking = Asking(lambda: server.infer("m", {"x": x})["y"])
    assert gate.began.wait(PATIENCE_S)

    server.unbind("m")
    gate.open()

    np.testing.assert_array_equal(asking.result, x)


def test_many_threads_may_bind(server, x):
    names = [f"m{number}" for number in range(8)]

    threads = [Asking(lambda name=name: server.bind(name, lambda x: x, **ROW)) for name in names]

    assert [thread.result for thread in threads] == [None] * 8
    assert [each["name"] for each in server.index()] == names


def test_a_bound_function_has_statistics_metrics_and_a_configuration(server, x):
    server.bind("m", lambda x: x, batching=True, max_batch_size=7, instances=3, **ROW)
    server.infer("m", {"x": np.stack([x, x])})

    config = server.config("m")
    assert (config["backend"], config["max_batch_size"]) == ("function", 7)
    assert config["instance_group"][0]["count"] == 3
    assert server.statistics("m")[0]["inference_count"] == 2
    (family,) = [f for f in server.metrics() if f.name == "nv_inference_count"]
    assert [(sample.labels["model"], sample.value) for sample in family.samples] == [("m", 2)]


def test_a_function_that_yields_is_decoupled(server):
    def count(x):
        yield x

    server.bind("m", count, **ROW)

    assert server.config("m")["model_transaction_policy"] == {"decoupled": True}


def test_responses_of_a_function_are_cached_if_configured(x):
    calls = []
    with core.Server(cache_config="local,size=1048576") as server:
        more = {"config": {"response_cache": {"enable": True}}}
        server.bind("m", lambda x: calls.append(1) or x, **more, **ROW)
        server.infer("m", {"x": x})
        np.testing.assert_array_equal(server.infer("m", {"x": x})["y"], x)
        assert len(calls) == 1

        server.bind("m", lambda x: calls.append(2) or -x, **more, **ROW)
        np.testing.assert_array_equal(server.infer("m", {"x": x})["y"], -x)
        assert calls == [1, 2]
