"""One generation and its responses, where something fails."""

import types

from core_generate import Event, Prompt
from core_generate.running import GenerationRun

from core.errors import internal


class Loop:
    """Runs calls at `turn`."""

    def __init__(self):
        self.calls = []

    def call_soon_threadsafe(self, call, *arguments):
        self.calls.append((call, arguments))

    def turn(self):
        calls, self.calls = self.calls, []
        for call, arguments in calls:
            call(*arguments)


class Client:
    """A request whose client is behind until `resume`."""

    parent = trace = None
    arrival_ns = 0
    paused = True

    def when_free(self, call):
        self.resume = call


def test_an_error_of_the_events_that_waited_ends_the_request():
    loop, client, ended = Loop(), Client(), []

    def respond(*arguments, **more):
        raise internal("no room")

    batch = types.SimpleNamespace(requests=[client], respond=respond)
    asked = types.SimpleNamespace(
        stream=True, prepend=False, returns=frozenset(), prompt=Prompt("a"), sampling=None
    )
    engine = types.SimpleNamespace(generate=lambda prompt, sampling, emit: emit)
    measured = types.SimpleNamespace(ended=lambda *arguments: None)
    run = GenerationRun(batch, asked, engine, measured, loop, ended.append)
    run.start()

    run._emit(Event("a", (1,)))
    loop.turn()
    client.resume()
    run._emit(Event("b", (2,)))  # after the end
    loop.turn()

    assert [each.message for each in ended] == ["no room"]
