"""Flow tests: all rooms of a request, no sockets, time that is given and not slept."""

import asyncio
import selectors
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from flow.ensembles import opener

import core
from core import config as configuration
from core.config import ModelConfig
from core.pipeline import ChainServices, open_chain
from core.pipeline.instances import runner


class VirtualTimeSelector(selectors.DefaultSelector):
    """Never waits: where a real selector would sleep, the loop's time advances at once."""

    loop: "VirtualTimeLoop"

    def select(self, timeout=None):
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            # Only another thread can end this wait; those are the real workers of a few tests.
            return super().select(5)
        self.loop.now_s += timeout
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop whose clock advances only if there is no work left."""

    def __init__(self):
        selector = VirtualTimeSelector()
        selector.loop = self
        self.now_s = 1000.0
        super().__init__(selector)

    def time(self):
        return self.now_s

    def time_ns(self):
        return round(self.now_s * 1e9)


def pytest_asyncio_loop_factories(config, item):
    """The tests of this folder; those of folders in it wait for threads and files."""
    if item.path.parent == Path(__file__).parent:
        return {"virtual-time": VirtualTimeLoop}
    return {"real-time": asyncio.new_event_loop}


class AtOnce(ThreadPoolExecutor):
    """Executor that runs functions in the calling thread."""

    def submit(self, function, *args):
        future = Future()
        future.set_result(function(*args))
        return future


@pytest.fixture
async def at_once():
    """Instances open and close without threads, so that every run of a seed is the same."""
    asyncio.get_running_loop().set_default_executor(AtOnce())


class Recorder:
    """Record of the calls of one model's instances."""

    def __init__(self):
        self.batches = []
        self.closed = 0


@pytest.fixture
def serve():
    """Open a chain for a model of one FP32 input `x` and output `y`; see `open_model`."""

    async def open_model(
        instance,
        config="",
        max_batch_size=8,
        decoupled=False,
        cache=None,
        limiter=None,
        recorder=None,
        statistics=None,
        model=core.Model,
        early=True,
    ):
        text = f"""
            name: "m" backend: "test" max_batch_size: {max_batch_size}
            input [ {{ name: "x" data_type: TYPE_FP32 dims: [ -1 ] }} ]
            output [ {{ name: "y" data_type: TYPE_FP32 dims: [ -1 ] }} ]
            {config}
        """
        if decoupled:
            text += " model_transaction_policy { decoupled: true }"
        message = configuration.parse_text(text, "test")
        configuration.normalise(message, {}, [])
        model = model()
        model.config, model.name, model.version = message, "m", 1
        model.path = model.directory = Path()
        model.backend = core.Backend(instance=instance)
        model.recorder = recorder or Recorder()
        loop = asyncio.get_running_loop()
        chain = await open_chain(
            model,
            configuration.signature_of(message, Path(), 1),
            ChainServices(loop, loop.time_ns, cache, limiter, early=early),
            statistics=statistics,
        )
        chain.recorder, chain.model = model.recorder, model
        return chain

    return open_model


@pytest.fixture
def ensemble(serve):
    """Open an ensemble: `await ensemble(steps, …)`; see flow.ensembles."""
    return opener(serve)


@pytest.fixture
def fake():
    """A device in memory, with instances that compute on it; see flow.devices."""
    from flow.devices import Fake  # other tests do not need its packages

    return Fake()


@pytest.fixture
def configure():
    """Serve by other settings: `configure(chain, text)`; a field in it replaces that of before."""

    def configured(chain, text):
        given = configuration.parse_text(text, "test")
        config = ModelConfig()
        config.CopyFrom(chain.model.config)
        for field, _ in given.ListFields():
            config.ClearField(field.name)
        config.MergeFrom(given)
        configuration.normalise(config, {}, [])
        old, chain.model.config = chain.model.config, config
        chain.configure(old, config)

    return configured


@pytest.fixture
async def prepare(monkeypatch):
    """Prepare another instance_group for a chain: `prepare(chain, *texts of groups)`, to be committed.

    Instances open and close at once, without separate threads: virtual time would not wait for those.
    """

    async def called(function, *args):
        return function(*args)

    class AtOnce:
        def __init__(self, target, **_):
            self.start = target

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(runner, "threading", SimpleNamespace(Thread=AtOnce))
    monkeypatch.setattr(
        loop,
        "run_in_executor",
        lambda _, function, *args: asyncio.ensure_future(called(function, *args)),
    )

    async def prepared(chain, *groups):
        text = f'name: "m" backend: "test" instance_group [ {", ".join(groups)} ]'
        wanted = configuration.parse_text(text, "test")
        configuration.normalise(wanted, {}, [])
        config = ModelConfig()
        config.CopyFrom(chain.model.config)
        config.ClearField("instance_group")
        config.instance_group.extend(wanted.instance_group)
        chain.model.config = config
        return await chain.prepare(chain.model)

    return prepared


@pytest.fixture
def change(prepare):
    """The same, committed."""

    async def changed(chain, *groups):
        (await prepare(chain, *groups)).commit()
        await asyncio.sleep(0)

    return changed


class RecordingInstance(core.ModelInstance):
    """An instance that answers with its input after 10 ms and records its open, execute and close."""

    def open(self):
        self.note("open")

    def note(self, event):
        self.model.recorder.batches.append((event, self.name))

    async def execute(self, batch):
        self.note("execute")
        await asyncio.sleep(0.010)
        return {"y": batch["x"]}

    def close(self):
        self.note("close")


@pytest.fixture(name="recording")
def recording_fixture():
    """Return the class RecordingInstance."""
    return RecordingInstance
