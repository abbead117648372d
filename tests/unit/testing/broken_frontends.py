"""Frontends with one mistake each, held against the contract kit by test_frontend_kit.py."""

import asyncio
import sys
from pathlib import Path

import numpy as np

from core.errors import CoreError, internal
from core.testing import FrontendConformance

sys.path.insert(0, str(Path(__file__).parent))
from line_frontend import LineClient, LineFrontend, to_json

MISTAKES = {}


def caught_by(*tests):
    """The class is a frontend that is to fail in these tests."""

    def register(made):
        name = f"Test{made.__name__}"
        globals()[name] = type(name, (Contract,), {"frontend": made, "patience_s": 0.5})
        MISTAKES.update(dict.fromkeys(tests, name))
        return made

    return register


class Contract(FrontendConformance):
    frontend = LineFrontend
    client = LineClient
    name = "line"


class TestWell(Contract):
    pass


@caught_by("test_it_listens_from_start_to_stop")
class ListensForever(LineFrontend):
    async def stop(self, timeout_s):
        """Closes nothing."""


@caught_by("test_it_may_be_stopped_twice")
class StopsOnce(LineFrontend):
    async def stop(self, timeout_s):
        await super().stop(timeout_s)
        del self.listening


@caught_by("test_a_port_that_is_taken_is_an_error_that_names_it")
class TellsNoPort(LineFrontend):
    async def start(self):
        try:
            await super().start()
        except CoreError as error:
            raise OSError("no") from error


@caught_by(
    "test_it_tells_whether_server_and_models_are_ready",
    "test_it_listens_before_the_models_are_loaded_and_is_not_ready",
    "test_it_is_not_ready_while_the_server_ends",
)
class IsAlwaysReady(LineFrontend):
    def ready(self):
        return True

    def model_ready(self, model):
        return True


@caught_by("test_it_describes_the_server", "test_it_describes_a_model")
class DescribesItself(LineFrontend):
    def metadata(self):
        return {"name": "line", "version": "1"}

    def model_metadata(self, model):
        return {**super().model_metadata(model), "inputs": []}


@caught_by("test_a_request_gets_its_answer")
class AddsOne(LineFrontend):
    def rendered(self, response):
        for tensor in response.outputs:
            tensor.array[...] += 1
        return super().rendered(response)


@caught_by("test_every_datatype_comes_through")
class KnowsFloats(LineFrontend):
    def rendered(self, response):
        found = super().rendered(response)
        for each in found["outputs"]:
            each["dtype"] = "FP32" if each["dtype"] == "INT32" else each["dtype"]
        return found


@caught_by("test_text_comes_through_as_it_is")
class KnowsAscii(LineFrontend):
    def rendered(self, response):
        for tensor in response.outputs:
            if tensor.dtype.name == "BYTES":
                flat = [word.decode("ascii", "ignore").encode() for word in tensor.array]
                text = type(tensor).of(tensor.name, np.array(flat, object))
                return {"outputs": [to_json(text)] * 2}
        return super().rendered(response)


@caught_by("test_an_empty_tensor_comes_through")
class NeedsElements(LineFrontend):
    def request(self, message):
        if not all(each["raw"] for each in message["inputs"]):
            raise internal("there is nothing in it")
        return super().request(message)


@caught_by("test_a_large_tensor_comes_through")
class TakesShortLines(LineFrontend):
    limit = 1 << 16


@caught_by("test_only_the_wanted_output_comes_back")
class GivesAll(LineFrontend):
    def request(self, message):
        return super().request({**message, "outputs": []})


@caught_by("test_many_requests_at_once_get_their_own_answers")
class GivesTheLatest(LineFrontend):
    latest = None

    async def send(self, message, reply, writer):
        answer = await reply
        GivesTheLatest.latest = answer
        await asyncio.sleep(0.02)
        self.write(writer, self.rendered(GivesTheLatest.latest))


@caught_by(
    "test_an_unknown_model_is_refused_by_name",
    "test_an_unknown_version_is_refused",
    "test_an_unknown_input_is_refused_by_name",
    "test_a_wrong_shape_is_refused_by_the_name_of_its_input",
    "test_an_error_of_the_model_comes_back_with_its_text",
    "test_an_error_in_a_stream_comes_back",
)
class LosesTexts(LineFrontend):
    def write_error(self, writer, error):
        super().write_error(writer, CoreError(error.kind, "it failed"))


@caught_by("test_a_request_that_is_too_large_is_refused")
class TakesAnyLine(LineFrontend):
    limit = 1 << 30


@caught_by("test_a_stream_gives_its_answers_in_order_and_ends", "test_streams_do_not_mix")
class StreamsBackwards(LineFrontend):
    async def send(self, message, reply, writer):
        items = [item async for item in reply]
        for item in reversed(items):
            self.write(writer, self.rendered(item))
        self.write(writer, {"end": True})


@caught_by("test_a_stream_of_nothing_ends")
class EndsWithAnAnswer(LineFrontend):
    async def send(self, message, reply, writer):
        self.write(writer, {"outputs": []})
        await super().send(message, reply, writer)


@caught_by("test_a_model_waits_for_a_client_that_does_not_read")
class CollectsAnswers(LineFrontend):
    async def send(self, message, reply, writer):
        reply.listen(lambda item, final: item and self.write(writer, self.rendered(item)))
        await asyncio.sleep(60)


@caught_by(
    "test_a_call_that_is_given_up_cancels_its_request",
    "test_a_client_that_leaves_cancels_its_requests",
)
class DoesNotNotice(LineFrontend):
    def gone(self, reply):
        """Nobody minds."""


@caught_by("test_a_client_that_leaves_disturbs_no_other")
class CutsAll(LineFrontend):
    def gone(self, reply):
        super().gone(reply)
        self.cut()


@caught_by("test_stop_waits_for_what_is_in_flight")
class WaitsForNothing(LineFrontend):
    async def stop(self, timeout_s):
        await super().stop(0)


@caught_by("test_stop_gives_up_when_its_time_has_passed")
class WaitsForever(LineFrontend):
    async def stop(self, timeout_s):
        await super().stop(None)
