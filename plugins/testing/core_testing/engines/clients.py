"""Clients over the server: streams, tensors, refusals, clients that disconnect or stop reading."""

from __future__ import annotations

import asyncio
import json
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from core_generate import Sampling

from core.errors import CoreError, Kind
from core.request import InferenceRequest
from core.response import InferenceResponse
from core_testing.engines.cancelling import _room
from core_testing.engines.kit import EngineKit, Generating, text_of
from core_testing.leftovers import settles
from core_testing.served import request_of

VALUES: dict[str, Any] = {
    "min_tokens": 3,
    "temperature": 0.5,
    "top_p": 0.5,
    "top_k": 2,
    "min_p": 0.1,
    "frequency_penalty": 0.5,
    "presence_penalty": 0.5,
    "repetition_penalty": 1.5,
    "seed": 3,
    "stop_tokens": [3],
    "ignore_eos": True,
    "logit_bias": {"3": 1},
    "logprobs": 2,
    "structure": None,
}
JSON_NAMES = {"stop_tokens": "stop_token_ids"}


class Clients(EngineKit):
    def test_a_stream_has_the_text_of_one_response(self, generating: Generating) -> None:
        expected = generating.ended().text

        stream = generating.served.stream(generating.inputs("stream"))
        (whole,) = generating.served.stream(generating.inputs("exclude_input_in_output"))
        (after,) = generating.served.stream(generating.inputs())

        assert text_of(stream) == text_of([whole]) == expected
        assert len(stream) > 1
        assert text_of([after]) == generating.prompt + expected

    def test_a_request_gets_the_outputs_that_it_asks_for(self, generating: Generating) -> None:
        flags = ["return_finish_reason", "return_num_input_tokens", "return_num_output_tokens"]
        if "logprobs" in generating.engine.supports:
            flags += ["return_logprobs", "return_cumulative_logprob"]
        expected = generating.ended()

        found = generating.served.stream(generating.inputs("stream", *flags))

        last = found[-1]
        assert [each["finish_reason"][0] for each in found[:-1]] == [b"None"] * (len(found) - 1)
        assert last["finish_reason"][0].decode() == expected.finish
        assert last["num_input_tokens"][0] == expected.events[-1].prompt_tokens
        assert sum(int(each["num_output_tokens"][0]) for each in found) == expected.count
        if "return_logprobs" in flags:
            entries = [entry for each in found for entry in json.loads(each["logprobs"][0])]
            assert len(entries) == expected.count
            total = sum(entry["logprob"] for entry in entries)
            assert float(last["cumulative_logprob"][0]) == pytest.approx(total, abs=1e-2)

    def test_what_the_engine_does_not_support_is_refused_by_its_name(
        self, generating: Generating
    ) -> None:
        missing = [
            each.name
            for each in fields(Sampling)
            if VALUES.get(each.name) is not None and each.name not in generating.engine.supports
        ]
        if not missing:
            pytest.skip("Engine.supports has every field of Sampling")
        for field in missing:
            name = JSON_NAMES.get(field, field)
            with pytest.raises(CoreError, match=f"'{name}'") as caught:
                generating.served.stream(generating.inputs(**{name: VALUES[field]}))
            assert caught.value.kind is Kind.INVALID

    def test_more_requests_than_the_engine_runs_at_once_are_answered(
        self, generating: Generating
    ) -> None:
        count = min(generating.engine.most + 3, 4 * self.most)
        expected = generating.ended().text

        streams = generating.served.streams([generating.inputs("stream")] * count)

        texts = {text_of(each) for each in streams}
        assert texts == {expected} if self.exact else texts

    def test_a_client_that_disconnects_ends_its_generation(self, generating: Generating) -> None:
        generating.served.after_cancelling(
            generating.inputs("stream", max_tokens=_room(generating))
        )

        assert settles(lambda: not generating.engine.status().running), "the engine still computes"
        expected = generating.ended().text
        assert text_of(generating.served.stream(generating.inputs("stream"))) == expected

    def test_a_client_that_stops_reading_holds_up_no_other_and_gets_its_whole_text(
        self, generating: Generating
    ) -> None:
        expected = generating.ended().text

        slow, quick = generating.served._call(_slow_and_quick(generating))

        assert quick == expected, "another client waits for the slow one"
        assert slow == expected

    def test_a_context_that_is_full_ends_the_text(self, generating: Generating) -> None:
        if not generating.model.description.context:
            pytest.skip("the description of the model has no context")
        generating.needs("ignore_eos")
        inputs = generating.inputs(
            "stream", "return_finish_reason", max_tokens=2**31 - 1, ignore_eos=True
        )

        found = generating.served.stream(inputs)

        assert found[-1]["finish_reason"][0] == b"length"

    def test_a_text_that_is_not_utf_8_is_refused(self, generating: Generating) -> None:
        inputs = {**generating.inputs(), "text_input": np.array([b"\xff\xfe"], object)}

        with pytest.raises(CoreError, match="'text_input' is not UTF-8") as caught:
            generating.served.stream(inputs)

        assert caught.value.kind is Kind.INVALID


async def _slow_and_quick(generating: Generating) -> tuple[str, str]:
    """Send two equal requests of two clients. The first client reads nothing until the second has ended.

    Return the whole texts of both.
    """
    models = generating.served._server.models
    requests = [request_of(generating.inputs("stream")) for _ in range(2)]
    slow, quick = [_Client(each) for each in requests]
    slow.request.pause()
    for client in (slow, quick):
        models.infer(client.request).listen(client)
    await asyncio.wait_for(quick.ended.wait(), 60)
    # The request has ended for the engine, and its responses wait for the client.
    slow.request.resume()
    await asyncio.wait_for(slow.ended.wait(), 60)
    return slow.text, quick.text


class _Client:
    def __init__(self, request: InferenceRequest):
        self.request = request
        self.text = ""
        self.ended = asyncio.Event()

    def __call__(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        if isinstance(item, CoreError):
            raise item
        if item is not None:
            self.text += text_of([{"text_output": item.output("text_output").array}])
        if final:
            self.ended.set()
