"""Ensembles of which a step refuses requests: each request has an answer, and nothing waits for ever."""

import concurrent.futures
import itertools

import grpc
import pytest

COUNT = 8
IO = """
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
NARROW = f"""backend: "test" {IO} dynamic_batching {{
  preferred_batch_size: [ ] default_queue_policy {{ max_queue_size: 1 }} }}
"""
SEQUENCE = f'backend: "test" {IO} sequence_batching {{ oldest {{ max_candidate_sequences: 64 }} }}'


def ensemble(first, more="", decoupled=False):
    """x → first → narrow → y."""
    steps = ((first, "x", "between"), ("narrow", "between", "y"))
    text = " ".join(
        f'step {{ model_name: "{model}" input_map {{ key: "x" value: "{takes}" }} '
        f'output_map {{ key: "y" value: "{gives}" }} }}'
        for model, takes, gives in steps
    )
    kind = "model_transaction_policy { decoupled: true }" if decoupled else ""
    return f'platform: "ensemble" {IO} {kind} ensemble_scheduling {{ {text} {more} }}'


MODELS = {
    "narrow": NARROW,
    "follows": SEQUENCE,
    "plain": ensemble("echo"),
    "of_sequences": ensemble("follows"),
    "streams": ensemble("many", decoupled=True),
    "bounded": ensemble("many", "max_inflight_requests: 1", decoupled=True),
}
numbers = itertools.count(1)


@pytest.fixture
def full(serve):
    """A server whose model `narrow` runs a request, has one in its queue, and refuses all others."""
    return serve(MODELS)


def outcomes(served, asks):
    """Of each request whether it was answered; else it was refused. The gate opens behind a refusal."""
    with concurrent.futures.ThreadPoolExecutor(len(asks)) as threads:
        futures = [threads.submit(ask) for ask in asks]
        first = next(concurrent.futures.as_completed(futures, 60))
        assert first.result() is False
        served.backend.gate.set()
        return [each.result(60) for each in futures]


def over_http(served, document, model, **parameters):
    def ask():
        answer = served.infer(document(2.0, parameters=parameters), model)
        assert answer.status in (200, 503), answer.body
        assert answer.status == 200 or "Exceeds maximum queue size" in answer.text
        return answer.status == 200

    return ask


def over_grpc(served, message, model, *values, **parameters):
    request = message(*values, model=model)
    for key, value in parameters.items():
        setattr(
            request.parameters[key], f"{type(value).__name__}_param".replace("int", "int64"), value
        )

    def ask():
        answers = list(served.stub.ModelStreamInfer(iter([request]), timeout=60))
        errors = [each.error_message for each in answers if each.error_message]
        assert all("Exceeds maximum queue size" in each for each in errors), errors
        return not errors

    return ask


def sequence(model):
    if model != "of_sequences":
        return {}
    return {"sequence_id": next(numbers), "sequence_start": True, "sequence_end": True}


@pytest.mark.parametrize("model", ["plain", "of_sequences"])
def test_a_request_to_a_full_step_is_refused_and_the_others_are_answered(
    full, document, message, model
):
    """An ensemble whose step had max_queue_size waited for ever once the queue was full."""
    asks = [over_http(full, document, model, **sequence(model)) for _ in range(COUNT)]
    asks += [over_grpc(full, message, model, 2.0, **sequence(model)) for _ in range(COUNT)]

    found = outcomes(full, asks)

    assert found.count(True) >= 2
    again = over_http(full, document, model, **sequence(model))
    assert again() and over_grpc(full, message, model, 2.0, **sequence(model))()


@pytest.mark.parametrize("model", ["streams", "bounded"])
def test_answers_of_a_decoupled_step_that_find_no_place_end_their_request(full, message, model):
    asks = [over_grpc(full, message, model, 1.0, 2.0, 3.0) for _ in range(COUNT)]

    found = outcomes(full, asks)

    assert False in found
    assert over_grpc(full, message, model, 1.0)()
    if model == "bounded":  # one at a time fits, however many follow
        assert over_grpc(full, message, model, *[1.0] * 50)()


def test_an_unload_does_not_wait_for_a_request_that_was_refused(serve, document):
    served = serve(MODELS, model_control_mode="explicit", load_model=["*"])
    found = outcomes(served, [over_http(served, document, "plain") for _ in range(COUNT)])

    assert False in found
    for name in ("plain", "narrow"):
        assert served.ask("POST", f"/v2/repository/models/{name}/unload", {}).status == 200


def test_requests_that_are_cancelled_while_a_step_is_full_leave_it(full, document, message):
    calls = [
        full.stub.ModelInfer.future(message(1.0, model="plain"), timeout=60) for _ in range(COUNT)
    ]
    assert full.backend.running.wait(20)

    for call in calls:
        call.cancel()
    full.backend.gate.set()

    for call in calls:
        with pytest.raises((grpc.RpcError, grpc.FutureCancelledError)):
            raise call.exception(60)
    # The execution of a disconnected client ends; then the queue has free slots again.
    while not over_http(full, document, "plain")():
        pass
