"""Loads, overrides, unloads, polls and changes of files in any order, compared with the expected result.

Models a and b multiply by the number in their file, or fail to load; e sends through both.
"""

import asyncio
import itertools
import shutil
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import MonkeyPatch

from core.errors import CoreError
from core.options import Options

from .conftest import CONFIG, Managed, RecordingBackend, Ticker
from .test_ensembles import ensemble
from .test_override import as_json

PLAIN = ("a", "b")

names = st.sampled_from(PLAIN)
texts = st.sampled_from(["2", "3", "5", "fail", None])
writes = st.tuples(st.just("write"), names, texts)
loads = st.tuples(st.just("load"), st.sampled_from([*PLAIN, "e"]))
overrides = st.tuples(st.just("override"), names, st.sampled_from(["7", "11", "fail"]))
unloads = st.tuples(st.just("unload"), st.sampled_from([*PLAIN, "e"]), st.booleans())
steps = st.lists(st.one_of(writes, loads, overrides, unloads), max_size=12)


@dataclass
class Expected:
    """The expected state: a model of the manager, in explicit mode.

    disk       name → text of its file; missing without a folder
    serving    name → factor
    by_name    loaded by their own name
    known      names that the manager remembers: models on disk or serving, once they were requested
    """

    disk: dict = field(default_factory=dict)
    serving: dict = field(default_factory=dict)
    by_name: set = field(default_factory=set)
    known: set = field(default_factory=set)
    wants_e: bool = False
    serves_e: bool = False

    def copy(self):
        return deepcopy(self)

    def do(self, action, *rest):
        getattr(self, action)(*rest)

    def write(self, name, text):
        self.disk.pop(name, None)
        if text is not None:
            self.disk[name] = text

    def load(self, name):
        self.known.add(name)
        if name == "e":
            self.bring_e()
        elif name in self.disk:
            self.take(name, self.disk[name])
            self.by_name.add(name)
            self.wake()
        self.forget()

    def override(self, name, text):
        self.known.add(name)
        self.take(name, text)
        self.by_name.add(name)
        self.wake()
        self.forget()

    def forget(self):
        """Forget an unknown name; it leaves no trace."""
        self.known -= {name for name in PLAIN if name not in self.disk and name not in self.serving}
        self.by_name &= self.known

    def take(self, name, text):
        if text != "fail":
            self.serving[name] = float(text)

    def wake(self):
        if self.wants_e and not self.serves_e:
            self.bring_e()

    def bring_e(self):
        self.wants_e = True
        self.known.update(PLAIN)
        for name in PLAIN:
            self.take(name, self.disk.get(name, "fail"))
        self.serves_e = self.serves_e or set(PLAIN) <= set(self.serving)

    def unload(self, name, dependents):
        if name not in self.known:
            return
        if name == "e":
            used, self.wants_e, self.serves_e = self.wants_e, False, False
            for step in PLAIN if dependents and used else ():
                if step not in self.by_name:
                    self.serving.pop(step, None)
        else:
            self.serving.pop(name, None)
            self.by_name.discard(name)
            self.serves_e = False
        self.forget()

    @property
    def factors(self):
        found = dict(self.serving)
        if self.serves_e:
            found["e"] = self.serving["a"] * self.serving["b"]
        return found


class World:
    """A manager over a separate folder."""

    def __init__(self, root, mode="explicit"):
        self.models = root / "models"
        self.models.mkdir()
        self.backend = RecordingBackend()
        self.ticker = Ticker()
        self.number = 0
        options = Options.defaults(
            model_control_mode=mode, model_repository=[str(self.models)], exit_on_error=False
        )
        loop = asyncio.get_running_loop()
        self.manager = Managed(
            options,
            loop,
            find_backend={"test": self.backend}.__getitem__,
            sleep=self.ticker.sleep,
            clock=lambda: self.ticker.now,
        )
        self.manager.provide(self.manager)
        (self.models / "e").mkdir()
        (self.models / "e" / "config.pbtxt").write_text(ensemble("a", "b"))
        (self.models / "e" / "1").mkdir()

    async def do(self, action, name, *rest):
        try:
            if action == "write":
                self.write(name, *rest)
            elif action == "load":
                await self.manager.load(name, {})
            elif action == "override":
                await self.manager.load(
                    name, {"config": as_json(), "file:1/model.txt": rest[0].encode()}
                )
            else:
                await self.manager.unload(name, *rest)
        except CoreError:
            pass  # a failed load; the serving versions show the result

    def write(self, name, text):
        """Replace a model atomically. Each time its files are new ones, also with the same text."""
        new = self.models.parent / f"new-{self.number}"
        self.number += 1
        if (self.models / name).exists():
            shutil.move(self.models / name, self.models.parent / f"old-{self.number}")
        if text is not None:
            (new / "1").mkdir(parents=True)
            (new / "config.pbtxt").write_text(CONFIG)
            (new / "1" / "model.txt").write_text(text)
            (new / f"{self.number}.txt").write_text("")
            shutil.move(new, self.models / name)

    async def factors(self):
        found = {}
        for name in (*PLAIN, "e"):
            try:
                found[name] = float(await self.manager.factor(name))
            except CoreError:
                assert not self.manager.ready_versions(name)
            else:
                assert self.manager.ready_versions(name)
        return found

    async def end(self):
        """Stop; check that all objects are released."""
        self.ticker.flows = True
        assert await self.manager.stop(1e6) == 0
        await asyncio.get_running_loop().shutdown_default_executor()
        calls = [entry.split()[0] for entry in self.backend.calls]
        assert calls.count("open") - calls.count("close") == 0


def in_a_world(test, mode="explicit"):
    """Run a test in a new world with a folder of temporary files, which must be empty at its end."""
    with TemporaryDirectory() as place, MonkeyPatch.context() as patch:
        temporary = Path(place) / "temporary"
        temporary.mkdir()
        patch.setattr("tempfile.tempdir", str(temporary))

        async def run():
            world = World(Path(place), mode)
            try:
                await test(world)
            finally:
                await world.end()

        asyncio.run(run())
        assert list(temporary.iterdir()) == []


@settings(max_examples=20)
@given(steps)
def test_sequential_operations_have_their_effects_in_order(actions):
    async def run(world):
        expected = Expected()
        await world.manager.start()
        for action in actions:
            expected.do(*action)
            await world.do(*action)
            assert await world.factors() == expected.factors, action

    in_a_world(run)


concurrent = st.lists(
    st.lists(
        st.one_of(
            st.tuples(st.just("load"), names),
            overrides,
            st.tuples(st.just("unload"), names, st.just(False)),
        ),
        min_size=2,
        max_size=3,
    ),
    max_size=4,
)


@settings(max_examples=12)
@given(st.tuples(texts, texts), concurrent)
def test_concurrent_operations_have_the_effect_of_some_order(disk, rounds):
    async def run(world):
        possible = [Expected()]
        for name, text in zip(PLAIN, disk, strict=True):
            world.write(name, text)
            possible[0].write(name, text)
        await world.manager.start()
        for actions in rounds:
            await asyncio.gather(*(world.do(*each) for each in actions))
            seen = await world.factors()
            after = [
                outcome(each, order)
                for each in possible
                for order in itertools.permutations(actions)
            ]
            possible = [each for each in after if each.factors == seen]
            assert possible, (actions, seen)

    in_a_world(run)


def outcome(before, actions):
    found = before.copy()
    for each in actions:
        found.do(*each)
    return found


@settings(max_examples=10)
@given(st.lists(st.sampled_from(["write", "load", "override", "fail"]), min_size=1, max_size=8))
def test_whatever_replaces_a_model_loses_no_request(actions):
    """Reloads, overrides and failed loads during requests: each request is answered by a serving version."""

    async def run(world):
        world.write("a", "2")
        await world.manager.start()
        await world.manager.load("a", {})
        over = asyncio.Event()
        answers = []

        async def ask():
            while not over.is_set():
                answers.append(float((await world.manager.ask("a", 1.0)).output("y").array[0]))
                await asyncio.sleep(0)

        clients = [asyncio.create_task(ask()) for _ in range(3)]
        for action in actions:
            if action in ("write", "fail"):
                world.write("a", "fail" if action == "fail" else "3")
            await world.do(*(("override", "a", "7") if action == "override" else ("load", "a")))
        over.set()
        await asyncio.gather(*clients)
        assert answers
        assert set(answers) <= {2.0, 3.0, 7.0}

    in_a_world(run)


@settings(max_examples=12)
@given(st.lists(st.lists(st.tuples(names, texts), max_size=3), max_size=5))
def test_polling_follows_whatever_happens_to_the_files(looks):
    async def run(world):
        await world.manager.start()
        serving = {}
        for changes in looks:
            for name, text in changes:
                world.write(name, text)
            for name, text in dict(changes).items():
                if text is None:
                    serving.pop(name, None)
                elif text != "fail":
                    serving[name] = float(text)
            await world.ticker.tick()
            await world.manager.settled()
            expected = dict(serving)
            if len(serving) == 2:
                expected["e"] = serving["a"] * serving["b"]
            assert await world.factors() == expected, changes

    in_a_world(run, "poll")
