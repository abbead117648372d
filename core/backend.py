"""What a backend author reads: Backend, Model, ModelInstance, Device.

    import core, lightgbm

    class Booster(core.Model):
        def load(self):                                   # once per version
            self.booster = lightgbm.Booster(model_file=str(self.path / "model.txt"))

    class Predict(core.ModelInstance):
        def execute(self, batch):                         # x: FP32[rows, features] -> score: FP64[rows]
            return {"score": self.model.booster.predict(batch["x"])}

    backend = core.Backend(model=Booster, instance=Predict)

and in pyproject.toml

    [project.entry-points."core.backends"]
    lightgbm = "backend_lightgbm:backend"

Order of calls, outside in and back, also when a step raises:
Backend.open → Model.load → ModelInstance.open → execute* → ModelInstance.close → Model.unload →
Backend.close.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.host_policy import HostPolicy

if TYPE_CHECKING:
    from core.batch import Batch
    from core.config import ModelConfig
    from core.request import InferenceRequest

BatchRule = Callable[["InferenceRequest"], bool]
Complete = Callable[["ModelConfig", Path, "Backend"], None]


@dataclass(frozen=True)
class Device:
    """Where an instance runs. kind is "CPU", "GPU" or "MODEL" (the model places itself; id has no meaning).

    A secondary device is "NVDLA".
    """

    kind: str
    id: int = 0

    def __str__(self) -> str:
        return f"{self.kind.lower()}:{self.id}"


@dataclass(frozen=True)
class MemoryUsage:
    """Memory that is kept for a model.

    type        "CPU", "CPU_PINNED" or "GPU"
    id          of the device
    byte_size   as far as it is known
    """

    type: str
    id: int
    byte_size: int


class Model:
    """One loaded version of one model; shared by its instances.

    name, version   of the model
    path            the version's directory, e.g. …/models/mnist/3
    directory       the model's directory, e.g. …/models/mnist
    config          the completed ModelConfig message; read only. When only its instance groups change,
                    another message takes its place while the instances stay
    backend         the Backend it belongs to
    server          the Server, for models that call other models
    waits           `async with model.waits():` on the loop while a load has nothing to do but to wait for
                    the load of another model, so that others may load meanwhile
    """

    name: str
    version: int
    path: Path
    directory: Path
    config: ModelConfig
    backend: Backend
    server: Any
    waits: Callable[[], AbstractAsyncContextManager[None]] = staticmethod(nullcontext)
    checks_outputs: bool = False
    """Whether tensors that are given to Batch.respond and respond_all are compared with the configuration:
    datatype, rows and shape. Outputs that execute returns always are, but for their shape."""
    output_hint: str = ""
    """What an error of that check ends with, such as the setting that turns it off."""

    def load(self) -> None:
        """Read the model's files. On a worker thread; may take minutes; an exception fails the load."""

    def unload(self) -> None:
        """Give back what load took. On a worker thread, after the last instance has closed."""

    def memory_usage(self) -> Iterable[MemoryUsage]:
        """What the model keeps beside its instances, such as weights, for its statistics; nothing where that
        is not known. Loop thread, whenever somebody asks for statistics; must not block."""
        return ()

    def batch_rule(self) -> BatchRule:
        """A rule for one batch that dynamic batching gathers, beside the largest size and the shapes.

        Returns a function that is asked for each request, in the order in which they would run, whether it
        belongs into the batch. At the first False the batch is closed: it runs without that one. The first
        request is asked for too, and runs whatever is said. A batch that waits for more is looked at again
        from its beginning, with a new rule: what a rule adds up, it adds up in itself.

        Loop thread, within some microseconds; an exception closes the batch, and is logged. Not for models
        that do not override it, of sequences, or without dynamic batching.
        """
        raise NotImplementedError

    def file(self, default: str) -> Path:
        """The model's file in the version directory: `default_model_filename`, or `default`."""
        return self.path / (self.config.default_model_filename or default)

    def parameter(self, name: str, default: str = "") -> str:
        """The string value of a `parameters` entry of config.pbtxt."""
        entry = self.config.parameters.get(name) if name in self.config.parameters else None
        return entry.string_value if entry is not None else default


def _nobody_asks() -> None:
    """In the place of ModelInstance.changed, where an instance is not in a pool."""


class ModelInstance:
    """One worker of a model version. Its calls never overlap.

    model       the Model
    device      where it runs
    name        "<group>_<index>", as Triton names instances
    host_policy
                name, settings (key → value) and cores of its host policy. The instance's own thread is
                bound to the cores before open(), and threads inherit that from the one that starts
                them; who runs models in other processes binds those (`host_policy.bind`)
    passive     it is opened, and executes nothing: it stands by
    profiles    names of the optimization profiles of its group (TensorRT)
    secondary_devices
                what else it may use beside its device (DLA cores)
    loop        the server's event loop: an instance that waits for something beside its executions
                (a child process, a socket) watches it there
    placement   where `execute` runs: "thread" (its own thread, the default), "inline" (on the event
                loop: only for work of some tens of microseconds), or "auto" (on its thread while
                executions are long, on the loop while they are short: for an instance that does not
                mind who calls it; it may settle for "thread" in open()), or "callback" (`begin` starts
                it on the loop, for work that is done elsewhere). Else an `async def execute` always runs
                on the loop. Set on the class. With a host policy that has cores, "inline" and "auto"
                mean "thread": the loop is bound to none.
    changed     to be called on the loop when what `ready` gives has changed; written by core before open.
                While an instance is not ready, requests go to the others of its model, if one is ready
    native      a capsule of a native backend (core/include/core_abi.h), put here by open(): core calls what
                it holds, without the GIL, in the place of `execute`; docs/native-backends.md
    ahead       how many batches may be begun before the first of them is done, with placement
                "callback": more than one for an instance that takes short executions in groups. It
                executes them in order, one at a time. May change at any time; loop thread.
    memory      "host": inputs are numpy (the default); "device": those that another model has made on a
                device come as they are, see docs/device-tensors.md. Set on the class, or by open()
    """

    model: Model
    device: Device
    name: str
    host_policy: HostPolicy = HostPolicy()
    passive: bool = False
    profiles: tuple[str, ...] = ()
    secondary_devices: tuple[Device, ...] = ()
    loop: asyncio.AbstractEventLoop
    changed: Callable[[], None] = staticmethod(_nobody_asks)
    placement: str = "thread"
    ahead: int = 1
    memory: str = "host"
    native: Any = None

    def open(self) -> None:
        """Make buffers, streams, sessions. On a worker thread; an exception fails the load."""

    def execute(self, batch: Batch) -> Mapping[str, Any] | None:
        """Answer every request of `batch`.

        Returns {output name: array with the rows of all requests}; core splits it by rows. Or answers
        with batch.respond(i, …) / batch.fail(i, …) for each request, and returns None.
        Arrays that were given as answers are core's: large ones are sent without a copy, some time
        after this returns, so they must not be written to again. They may be on a device (anything with
        `__dlpack__`), whatever `memory` says; what computes them there must have ended by then.
        An exception fails the requests that have no answer yet; core.Fatal also takes the instance
        out of service.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has neither execute, nor stream, nor `native`"
        )

    def stream(self, request: InferenceRequest) -> Iterator[Mapping[str, Any]]:
        """Yield the answers to one request, in place of execute; for decoupled models.

        Each is {output name: array of one answer}. The generator is asked for the next one when the client
        has room for it, and not again once the request is cancelled. Thread of execute. Requests of a batch
        are answered one after the other. An exception fails the requests that have no last answer yet.
        """
        raise NotImplementedError(f"{type(self).__name__} has no stream")

    def gather(self, name: str, arrays: list[Any]) -> Any:
        """Put input `name` of several requests together; with memory "device", where at least one of them
        is on a device.

        arrays   in the order of the requests: numpy, or what the producers gave, on any device. They differ
                 in their first dimension only; those of a ragged input have one dimension
        Returns one array, or NotImplemented: then `batch[name]` is a numpy array of all. Thread of execute.
        """
        return NotImplemented

    def cancelled(self, batch: Batch) -> None:
        """Nobody waits for an answer to `batch` any more: all its requests are cancelled.

        For an instance that can break off what it computes; its execute then raises, and serves the next
        batch. Called at most once for a batch that runs on the instance's thread, on the loop thread, so it
        must not block. It may come shortly before execute begins with the batch or after it has ended.
        """

    def begin(self, batch: Batch, done: Callable[[BaseException | None], None]) -> None:
        """Start to answer `batch`; with placement "callback", in the place of execute. Loop thread.

        Must not block. done(error or None) is called once, on the loop thread, at once or later, when
        an execute would have returned or raised; with batch.respond(i, …) and batch.fail(i, …) before.
        An exception of begin counts as the error, and done must not be called then.
        """
        raise NotImplementedError(f"{type(self).__name__} has no begin")

    def ready(self) -> bool:
        """Whether the instance can serve now. Any thread; must not block."""
        return True

    async def check(self) -> bool:
        """Whether the instance can serve now, for who asks for the model's readiness: may ask the model
        itself, within some seconds. Loop thread."""
        return self.ready()

    def memory_usage(self) -> Iterable[MemoryUsage]:
        """What the instance keeps, such as buffers; as Model.memory_usage."""
        return ()

    def close(self) -> None:
        """Give back what open took. On a worker thread, after the last execute."""


def implements(found: object, base: type, method: str) -> bool:
    """Return whether an author's object or class overrides a method that does nothing in `base`.

    An object of another class than `base` implements it by having a method of that name.
    """
    own = getattr(found, method, None)
    return own is not None and getattr(own, "__func__", own) is not getattr(base, method)


_WORDS = {"placement": ("thread", "inline", "auto", "callback"), "memory": ("host", "device")}


def _check(found: Any, what: str, base: type[Any], steps: tuple[str, ...]) -> None:
    """Refuse what could not work, where its author sees it: at the import of the backend's package."""
    if not (isinstance(found, type) and issubclass(found, base)):
        raise TypeError(
            f"core.Backend({what}={found!r}): expected a class that inherits core.{base.__name__}, and not "
            "an object of it"
        )
    for step in steps:
        if inspect.iscoroutinefunction(getattr(found, step)):
            raise TypeError(
                f"{found.__name__}.{step} is a coroutine, which nobody would await: core calls it on a "
                f"worker thread, where it may block; write `def {step}`"
            )


def _names(what: str, found: Iterable[str] | None) -> tuple[str, ...] | None:
    """Refuse one text, which would be taken for the names of its letters."""
    if isinstance(found, str):
        raise TypeError(f"core.Backend({what}={found!r}): expected names, such as ({found!r},)")
    return None if found is None else tuple(found)


class Backend:
    """One per process and name; made at import of the backend's package, opened when the first model asks.

    model       the Model class
    instance    the ModelInstance class
    complete    complete(config, directory of the version, backend): writes what the model file knows into
                the config (names, datatypes, dims, max_batch_size); None if the format knows nothing
    instances   default `count` of an instance group, by device kind
    known_parameters
                names of the `parameters` that config.pbtxt of its models may have; a name with * stands for
                all that are passed on ("session.*"). core warns of others, which have no effect, and of one
                that is passed on and nearly one of these. None: core says nothing
    known_settings
                the same for the keys of --backend-config
    config      what --backend-config gave: key → value (written by core before open)
    """

    def __init__(
        self,
        *,
        instance: type[ModelInstance],
        model: type[Model] = Model,
        complete: Complete | None = None,
        instances: Mapping[str, int] | None = None,
        known_parameters: Iterable[str] | None = None,
        known_settings: Iterable[str] | None = None,
    ):
        _check(model, "model", Model, ("load", "unload"))
        _check(instance, "instance", ModelInstance, ("open", "close"))
        for name, words in _WORDS.items():
            found = getattr(instance, name)
            if isinstance(found, str) and found not in words:  # it may also be a property
                raise TypeError(
                    f"{instance.__name__}.{name} is {found!r}, it must be one of {', '.join(words)}"
                )
        self.model = model
        self.instance = instance
        self.complete = complete
        self.instances = dict(instances or {})
        self.known_parameters = _names("known_parameters", known_parameters)
        self.known_settings = _names("known_settings", known_settings)
        self.name = ""
        self.config: dict[str, str] = {}

    def open(self) -> None:
        """Take shared runtime handles. On a worker thread, before the first model loads; never at import."""

    def close(self) -> None:
        """Give back what open took, after the last model is gone."""
