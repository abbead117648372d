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

Order of calls: Backend.open → Model.load → ModelInstance.open → execute* → ModelInstance.close →
Model.unload → Backend.close. If one raises, all that was opened before it is still closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.backend_checks import check_arguments, check_class, names, refuse_misspelt
from core.system.host_policy import HostPolicy

if TYPE_CHECKING:
    from core.batch import Batch
    from core.config import ModelConfig
    from core.request import InferenceRequest

BatchRule = Callable[["InferenceRequest"], bool]
Complete = Callable[["ModelConfig", Path, "Backend"], None]


@dataclass(frozen=True)
class Device:
    """Where an instance runs: "CPU", "GPU", "NVDLA", or "MODEL" (it places itself, id has no meaning)."""

    kind: str
    id: int = 0

    def __str__(self) -> str:
        return f"{self.kind.lower()}:{self.id}"


@dataclass(frozen=True)
class MemoryUsage:
    """Memory that is kept for a model.

    type, id    "CPU", "CPU_PINNED" or "GPU", and the number of the device
    byte_size   as far as it is known
    """

    type: str
    id: int
    byte_size: int


class Model:
    """One loaded version of one model; shared by its instances.

    name, version    of the model
    path, directory  of the version, e.g. …/models/mnist/3, and of the model, e.g. …/models/mnist
    config           the completed ModelConfig message; read only. When only the instance groups change,
                     another message replaces it while the instances stay
    backend          the Backend it belongs to
    server           the core.control.models.Models, for models that call others; None without a server
    waits            `async with model.waits():` on the event loop, around the part of a load that only waits
                     for the load of another model: other models may load meanwhile
    checks_outputs   whether core compares tensors for Batch.respond and respond_all with the configuration:
                     datatype, rows and shape. It always compares the outputs that execute returns, except
                     for their shape
    output_hint      the end of an error of that check, such as the setting that turns it off
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
    output_hint: str = ""

    def load(self) -> None:
        """Read the model's files. Called on a worker thread; may take long. An exception fails the load."""

    def unload(self) -> None:
        """Release what load took. Called on a worker thread, after the last instance has closed."""

    def memory_usage(self) -> Iterable[MemoryUsage]:
        """Return what the model keeps beside its instances, such as weights, as far as it is known.

        Called on the event loop, such as when a client asks for statistics, so it must not block.
        """
        return ()

    def batch_rule(self) -> BatchRule:
        """Return a new rule for one batch of dynamic batching, beside its largest size and the shapes.

        The rule is called with each request, the first one too, in the order in which they would run, and
        returns whether the request belongs into the batch. The first False closes the batch without that
        request; if that is the first request, it runs alone. A batch that waits for more is checked again
        from its beginning with a new rule, so a rule keeps its sums in itself. Called on the event loop, so
        it must return within microseconds. An exception is logged and counts as False. Not called for
        sequences, without dynamic batching, or for a model in a process of its own.
        """
        raise NotImplementedError

    def file(self, default: str) -> Path:
        """Return the model's file in the version directory: `default_model_filename`, or `default`."""
        return self.path / (self.config.default_model_filename or default)

    def parameter(self, name: str, default: str = "") -> str:
        """Return the string value of an entry of `parameters` in config.pbtxt; `default` if none."""
        entries = self.config.parameters
        return entries[name].string_value if name in entries else default


class ModelInstance:
    """One execution slot of a model version. Calls of open, execute and close never overlap; others may.

    model       the Model
    device      where it runs; `secondary_devices`, such as DLA cores, are what else it may use
    name        "<group>_<index>", as Triton names instances
    host_policy name, settings (key → value) and cores of its host policy. The instance's own thread is bound
                to the cores before open(), and the threads that it starts inherit that. For a model in
                another process, call `host_policy.bind`
    passive     it is opened and executes nothing: it stands by
    profiles    names of the optimization profiles of its group (TensorRT)
    loop        the server's event loop, where an instance can watch a child process or a socket
    placement   where `execute` runs; set it on the class. An `async def execute` always runs on the loop
                "thread"     on the instance's own thread (default)
                "inline"     on the loop, for work of some tens of microseconds
                "auto"       on its thread while executions are long, on the loop while they are short;
                             open() may still choose "thread"
                "callback"   `begin` starts it on the loop, for work that is done elsewhere
                With a host policy that has cores, "inline" and "auto" mean "thread"
    pids        processes in which it runs, if not in this one; they change when one is replaced
    changed     call it on the loop when the result of `ready` has changed; core sets it before open. While an
                instance is not ready, requests go to the ready instances of its model, if there are any
    native      capsule of a native backend (core/include/core_abi.h), set by open(): core calls it without
                the GIL in place of `execute`; docs/write/native-backends.md
    ahead       with "callback": how many batches may be begun before the first of them is done. The instance
                executes them one by one, in order. May change at any time, on the loop
    memory      "host": inputs are numpy arrays (default); "device": inputs that another model has made on a
                device stay there, docs/serve/device-tensors.md. Set it on the class, or in open()
    """

    model: Model
    device: Device
    name: str
    host_policy: HostPolicy = HostPolicy()
    passive: bool = False
    profiles: tuple[str, ...] = ()
    secondary_devices: tuple[Device, ...] = ()
    loop: asyncio.AbstractEventLoop
    pids: tuple[int, ...] = ()
    changed: Callable[[], None] = staticmethod(lambda: None)
    placement: str = "thread"
    ahead: int = 1
    memory: str = "host"
    native: Any = None

    def open(self) -> None:
        """Make buffers, streams, sessions. Called on a worker thread. An exception fails the load."""

    def execute(self, batch: Batch) -> Mapping[str, Any] | None:
        """Answer every request of `batch`.

        Return {output name: array with the rows of all requests}, which core splits by rows. Or answer each
        request with batch.respond(i, …) or batch.fail(i, …), and return None.
        Arrays of answers belong to core, which may send them later without a copy: do not write to them
        again. They may be on a device (any object with `__dlpack__`), whatever `memory` is, if the device has
        finished computing them.
        An exception fails the requests without an answer; core.Fatal also takes the instance out of service.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has neither execute, nor stream, nor `native`"
        )

    def stream(self, request: InferenceRequest) -> Iterator[Mapping[str, Any]]:
        """Yield the answers to one request, in place of execute; for decoupled models.

        Each is {output name: array of one answer}. Called on the thread of execute, for the requests of a
        batch one after the other. core waits for room at the client after every 64 answers or 4 MiB, but not
        on the event loop. It takes one answer at most once `request.cancelled` is true. An exception fails
        the requests of the batch without a last answer.
        """
        raise NotImplementedError(f"{type(self).__name__} has no stream")

    def gather(self, name: str, arrays: list[Any]) -> Any:
        """Return one array of input `name` of several requests; NotImplemented lets core make a numpy array.

        Called on the thread of execute, with memory "device", if at least one array is on a device.

        arrays   in the order of the requests: numpy, or what the producers gave, on any device. They differ
                 in their first dimension only; those of a ragged input have one dimension
        """
        return NotImplemented

    def cancelled(self, batch: Batch) -> None:
        """Break off the execution of `batch`, because all its requests are cancelled; execute then raises.

        Called on the event loop, so it must not block, and only for instances with a thread; at most once for
        a batch, maybe shortly before execute begins with it or after it has ended.
        """

    def begin(self, batch: Batch, done: Callable[[BaseException | None], None]) -> None:
        """Start to answer `batch`, in place of execute; with placement "callback".

        Called on the event loop; must not block. When all answers are given, call done(None), or done(error)
        where execute would raise: once, on the event loop, now or later. An exception of begin counts as
        done(error); do not call done then.
        """
        raise NotImplementedError(f"{type(self).__name__} has no begin")

    def ready(self) -> bool:
        """Return whether the instance can serve now. Called on any thread; must not block."""
        return True

    async def check(self) -> bool:
        """Return whether the instance can serve now, for a client that asks.

        Called on the event loop. It may take some seconds, to ask the model itself.
        """
        return self.ready()

    def memory_usage(self) -> Iterable[MemoryUsage]:
        """Return what the instance keeps, such as buffers; as Model.memory_usage."""
        return ()

    def close(self) -> None:
        """Release what open took. Called on a worker thread, after the last execute."""


def implements(found: object, base: type, method: str) -> bool:
    """Return whether an object or a class has a method of that name that is not the one of `base`."""
    own = getattr(found, method, None)
    return own is not None and getattr(own, "__func__", own) is not getattr(base, method)


class Backend:
    """One per process and name. Make it when the backend's package is imported.

    model              the Model class
    instance           the ModelInstance class
    complete           complete(config, directory of the version, backend): writes what the model file knows
                       into the config (names, datatypes, dims, max_batch_size); None if it knows nothing
    instances          default `count` of a group, by device kind, 1 for others; with CPU alone no group
                       gets GPUs by itself
    known_parameters   names of the `parameters` in config.pbtxt of its models; "session.*" stands for all
                       with this beginning. core warns of other names, and of one under a * that resembles a
                       known name. None: core does not warn
    known_settings     the same for the keys of --backend-config
    config             the settings from --backend-config: key → value; core sets it before open
    """

    def __new__(cls, *args: Any, **given: Any) -> Any:
        """Return a new object. Raises TypeError for a misspelt argument, with the nearest name."""
        check_arguments(cls, given)
        return super().__new__(cls)

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
        refuse_misspelt(type(self), Backend)
        check_class(model, "model", Model, ("load", "unload"))
        check_class(instance, "instance", ModelInstance, ("open", "close"))
        self.model = model
        self.instance = instance
        self.complete = complete
        self.instances = dict(instances or {})
        self.known_parameters = names("known_parameters", known_parameters)
        self.known_settings = names("known_settings", known_settings)
        self.name = ""
        self.config: dict[str, str] = {}

    def open(self) -> None:
        """Take shared runtime handles, here and not at import. On a worker thread, before the first load."""

    def close(self) -> None:
        """Release what open took, after the last model is gone."""
