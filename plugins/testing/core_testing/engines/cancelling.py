"""A cancelled generation computes nothing more, and its place is free."""

from __future__ import annotations

import time

from core_generate import Sampling

from core_testing.engines.kit import EngineKit, Generating
from core_testing.engines.recorder import Recorder
from core_testing.leftovers import left, processor_s, settles, threads

END_S = 0.05  # after a cancellation, nothing is computed any more
TRIALS = 3  # other processes may keep the engine from its processor
BATCH = 16  # generations that are cancelled at once
STEPS = 4  # whose cost is measured
LONG = 100_000  # tokens: more than a context has


class Cancelling(EngineKit):
    def test_nothing_is_computed_50_ms_after_a_cancellation(self, generating: Generating) -> None:
        faults = []
        for _ in range(TRIALS):
            faults.append(_computed_after_cancellation(generating))
            if not faults[-1]:
                return
        raise AssertionError(f"{TRIALS} cancellations: {'; '.join(faults)}")

    def test_a_cancelled_batch_costs_no_further_step(self, generating: Generating) -> None:
        """A step that runs may end, and another may begin meanwhile. Counts the time of processors."""
        for count in sorted({1, min(generating.engine.most, BATCH)}):
            faults: list[str] = []
            while len(faults) < TRIALS and (found := _cost_of_cancellations(generating, count)):
                faults.append(found)
            assert len(faults) < TRIALS, f"{count} cancellations at once: {'; '.join(faults)}"

    def test_a_second_cancellation_does_nothing(self, generating: Generating) -> None:
        recorder, generation = generating.begin()
        recorder.wait(events=1)
        generation.cancel()
        generation.cancel()
        ended, other = generating.begin()
        ended.wait()

        other.cancel()

        assert generating.ended().text == ended.text

    def test_the_places_of_cancelled_generations_are_free(self, generating: Generating) -> None:
        expected = generating.ended().text
        count = min(generating.engine.most, self.most)
        sampling = generating.greedy(max_tokens=_room(generating))
        for _, generation in [generating.begin(sampling) for _ in range(count)]:
            generation.cancel()

        begun = [generating.begin()[0] for _ in range(count)]

        texts = {each.wait().text for each in begun}
        assert texts == {expected} if self.exact else texts
        assert settles(lambda: not generating.engine.status().running)

    def test_a_cancelled_generation_does_not_change_others(self, generating: Generating) -> None:
        if not self.exact:
            return
        expected = generating.ended().text
        other, generation = generating.begin(generating.greedy(max_tokens=_room(generating)))
        begun, _ = generating.begin()
        other.wait(events=2)

        generation.cancel()

        assert begun.wait().text == expected

    def test_no_thread_stays_after_the_unload(self, generating_alone: Generating) -> None:
        served = generating_alone.served
        served.unload()
        before = threads()
        for _ in range(3):
            served.load()
            served.stream(generating_alone.inputs("stream"))
            served.unload()

        assert not (found := left(lambda: threads() - before)), f"threads stay: {found}"


def _cost_of_cancellations(generating: Generating, count: int) -> str:
    """Cancel generations that run together. Return what the engine computes afterwards, "" for little.

    Little is twice a step, and 0.1 s for what the server itself does.
    """
    begun = [generating.begin(_endless(generating)) for _ in range(count)]
    recorders = [recorder for recorder, _ in begun]
    before, time_s = _shown(recorders, 1), time.monotonic()
    used_s = processor_s()
    steps = max(1, _shown(recorders, before + STEPS) - before)
    step_s, took_s = (processor_s() - used_s) / steps, (time.monotonic() - time_s) / steps
    for _, generation in begun:
        generation.cancel()
    used_s = processor_s()
    time.sleep(max(0.5, 10 * took_s))
    if (found := processor_s() - used_s) > 2 * step_s + 0.1:
        return f"{found:.2f} s of processors afterwards, a step needs {step_s:.3f} s"
    return ""


def _shown(recorders: list[Recorder], events: int) -> int:
    """Wait until each generation has had so many events, or has ended. Return the most that one has."""
    return max(len(each.wait(events=events).events) for each in recorders)


def _endless(generating: Generating) -> Sampling:
    """Return the sampling of a generation that goes on until the context is almost full."""
    more = {"ignore_eos": True} if "ignore_eos" in generating.engine.supports else {}
    return generating.greedy(max_tokens=_room(generating), **more)


def _computed_after_cancellation(generating: Generating) -> str:
    """Cancel a generation; return what the engine does for it END_S later, "" for nothing."""
    recorder, generation = generating.begin(_endless(generating))
    recorder.wait(events=3)
    generation.cancel()
    time.sleep(END_S)
    count = len(recorder.events)
    if generating.engine.status().running:
        return f"the engine still computes after {END_S * 1000:.0f} ms"
    time.sleep(4 * END_S)
    late = len(recorder.events) - count
    return f"{late} events came later than {END_S * 1000:.0f} ms" if late else ""


def _room(generating: Generating) -> int:
    """Return a max_tokens so large that a generation still runs when a test cancels it.

    It leaves 200 tokens of the context for the prompt; it is LONG if the model's context is unknown.
    """
    context = generating.model.description.context
    return max(1, context - 200) if context else LONG
