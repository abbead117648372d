"""A native backend may return invalid responses: its requests get a clear error, and the next batch
is answered.
"""

import numpy as np
import pytest
from core_testing.served import request_of

from core.errors import CoreError, Kind
from core.response import InferenceResponse

X = {"x": np.ones((2, 3), np.float32)}

REFUSED = {
    "undeclared": "unexpected inference output 'nobody' for model 'example'; its configuration has ['y']",
    "long_name": "nnnn",
    "no_name": "model 'example' gave output without a name",
    "other_dtype": "gave output 'y' as INT8, its configuration says FP32",
    "no_dtype": "gave output 'y' as no datatype, its configuration says FP32",
    "other_rows": "'y' with shape [3] for a batch of 2 rows: the first dimension must be 2",
    "negative_shape": "'y' with shape [2, -3], which is no shape of a tensor",
    "huge_shape": "9223372036854775807], which is no shape of a tensor",
    "too_large": "no memory for the 9007199254740992 bytes of output 'y'",
    "negative_dimensions": "'y' with -1 dimensions; 0 to 32 can be",
    "many_dimensions": "'y' with 1000 dimensions; 0 to 32 can be",
    "no_shape": "'y' with 2 dimensions and no shape",
    "other_size": "'y' with shape [2] and 3 bytes; that shape of FP32 has 8",
    "twice": "gave output 'y' twice",
    "no_data": "gave output 'y' without its data",
    "silent": "returned without an answer to request 0 of a batch of 1",
    "fails": "the forest is on fire",
    "fails_without_text": "model 'example' failed, and its backend does not say why",
    "fails_without_end": "e" * 1023,
    "fails_in_no_language": "\ufffd\ufffd caf\ufffd",
    "fails_unheard_of": "does not say why",
    "nonsense": "core refused it all",
    "released_unanswered": "model 'example' ended without an answer to request 0 of a batch of 1",
}


@pytest.mark.parametrize("player", REFUSED)
def test_invalid_outputs_are_refused_by_name(serve, player):
    served = serve(player)

    for _ in range(2):  # the instance serves on
        with pytest.raises(CoreError) as refused:
            served.ask(X)
        assert REFUSED[player] in refused.value.message
        assert len(refused.value.message) < 5000


def test_an_error_has_the_kind_that_the_backend_gave(serve):
    served = serve("fails")

    with pytest.raises(CoreError) as failed:
        served.ask(X)

    assert failed.value.kind is Kind.UNAVAILABLE


@pytest.mark.parametrize("decoupled", [False, True])
def test_outputs_of_an_execution_that_has_failed_are_not_sent(serve, decoupled):
    more = "model_transaction_policy { decoupled: true }" if decoupled else "dynamic_batching { }"
    served = serve("breaks_off", more=more)

    for answer in served.together([X, X]):
        assert isinstance(answer, CoreError)
        assert (answer.kind, answer.message) == (Kind.UNAVAILABLE, "the kernel has failed")


def test_a_decoupled_model_whose_execution_fails_does_not_end_without_an_error(serve):
    served = serve("fails", more="model_transaction_policy { decoupled: true }")

    with pytest.raises(CoreError, match="the forest is on fire"):
        served.ask(X)


def test_a_fatal_error_takes_the_instance_out_of_service(serve):
    served = serve("fatal")

    with pytest.raises(CoreError, match="the device is gone"):
        served.ask(X)
    with pytest.raises(CoreError, match="no instance of the model is left: the device is gone"):
        served.ask(X)

    assert served.executions() == 1


def test_malformed_strings_are_refused(serve):
    served = serve("malformed_text", dtype="STRING", dims=(1,), max_batch_size=0)

    with pytest.raises(CoreError, match="gave output 'y' with bytes that are not the elements"):
        served.ask({"x": np.array([b"a"], dtype=object)})


def test_one_request_fails_and_the_others_are_answered(serve):
    served = serve("fails_first", more="dynamic_batching { preferred_batch_size: 4 }")

    first, second = served.together([X, X])

    assert isinstance(first, CoreError)
    assert (first.kind, first.message) == (Kind.INVALID, "not this one")
    np.testing.assert_array_equal(second["y"], X["x"])


def test_memory_of_a_refused_output_is_released(serve, library):
    served = serve("give_refused")
    before = library.player_count(0)

    with pytest.raises(CoreError, match="nobody"):
        served.ask(X)

    assert library.player_count(0) == before + 1


def test_memory_of_the_backend_is_released_when_it_is_not_used_any_more(serve, library):
    served = serve("give")
    large = {"x": np.arange(200_000, dtype=np.float32).reshape(2, -1)}
    before = library.player_count(0)

    answer = served.ask(large)
    held = library.player_count(0)
    np.testing.assert_array_equal(answer["y"], large["x"])
    del answer

    assert (held, library.player_count(0)) == (before, before + 1)


def test_impossible_times_are_not_counted(serve):
    served = serve("times")

    served.ask(X)

    (entry,) = served._on_loop(lambda: served._server.control.health.statistics_here("example"))
    parts = entry["inference_stats"]
    total = int(parts["success"]["ns"])
    for part in ("compute_input", "compute_infer", "compute_output"):
        assert 0 <= int(parts[part]["ns"]) <= total


def test_a_response_has_the_parameters_that_the_backend_gave(serve):
    served = serve("parameters")

    async def act():
        return await served._server.models.infer(request_of(X, (), "example"))

    response = served._call(act())

    assert isinstance(response, InferenceResponse)
    assert response.parameters == {"text": "a\ufffd", "integer": -7, "boolean": True, "number": 0.5}


def test_a_backend_sees_the_details_of_a_request(serve):
    served = serve("details")
    request = request_of(X, ("y",), "example")
    request.id, request.correlation_id, request.flags = "7 é", "walk", 0
    request.priority, request.timeout_us = 3, 1_000_000
    request.parameters = {"a": "b", "n": -2, "yes": True, "half": 0.5, "large": 2**64 - 1}

    (answer,) = served.send([request])

    assert isinstance(answer, CoreError)
    assert answer.message == (
        "7 é 0 'walk' 3 1000000 flags 0 rows 0+2 deadline 0 a=b,0,0.000000 n=,-2,0.000000 "
        "yes=,1,0.000000 half=,0,0.500000 large=,0,18446744073709551616.000000 >y"
    )


def test_a_rescheduled_request_runs_in_a_later_batch(serve):
    served = serve("comes_again")

    np.testing.assert_array_equal(served.ask(X)["y"], X["x"])

    assert served.executions() == 3


def test_metrics_and_log_lines_of_a_backend_appear_in_the_server(serve, caplog):
    served = serve("measures")

    served.ask(X)

    found = served._on_loop(lambda: served._server.control.health.metrics_here())
    families = {family.name: family for family in found}
    (sample,) = families["players_batches"].samples
    assert (dict(sample.labels), sample.value) == ({"kind": "test"}, 2)
    assert "players_gauge" not in families  # it was released
    assert "a line of a native backend" in caplog.text
