"""A machine with GPUs that a test makes up: libcuda at the level of its C functions, and NVML.

libcuda gets what ctypes would pass to the real one; calls of NVML must fit the signatures of pynvml.
"""

import inspect
import uuid
from ctypes import c_void_p
from types import SimpleNamespace

import pynvml
from played_memory import PlayedMemory

PEER_ACCESS_ALREADY_ENABLED = 704
ERRORS = {2: b"out of memory", 100: b"no CUDA-capable device is detected"}


class Gpu:
    """One GPU: compute capability, bytes in use and in total, whether this process has its context."""

    def __init__(self, number, capability=(9, 0), used=0, total=1000, in_use=False):
        self.number, self.capability, self.in_use = number, capability, in_use
        self.used, self.total = used, total
        self.uuid = uuid.UUID(int=number + 1)
        self.retained = 0
        self.reads = set()  # numbers of the GPUs whose memory it reads directly
        self.fails = None  # an exception of NVML


class PlayedCuda(PlayedMemory):
    """libcuda. `statuses` maps the name of a function to the status that it returns.

    links   pairs of GPUs that can access each other; None: all
    """

    def __init__(self, gpus, links=None):
        super().__init__()
        self.gpus, self.links = gpus, links
        self.statuses, self.calls, self.stack = {}, [], []

    def __getattr__(self, name):
        if not name.startswith("cu"):
            raise AttributeError(name)
        function = getattr(self, f"_{name}", None)
        if function is None:
            raise AttributeError(name)

        def call(*arguments):
            self.calls.append(name)
            return self.statuses.get(name) or function(*arguments) or 0

        return call

    def _cuInit(self, flags):
        assert flags == 0

    def _cuGetErrorString(self, status, text):
        text._obj.value = ERRORS.get(status)

    def _cuDeviceGetCount(self, count):
        count._obj.value = len(self.gpus)

    def _cuDeviceGetName(self, name, size, number):
        name.value = b"Played GPU"
        assert len(name) == size

    def _cuDeviceGetUuid_v2(self, found, number):
        found.raw = self.gpus[number].uuid.bytes

    def _cuDeviceGetAttribute(self, found, attribute, number):
        found._obj.value = self.gpus[number].capability[attribute - 75]

    def _cuDeviceCanAccessPeer(self, found, number, peer):
        assert number != peer
        found._obj.value = self.links is None or {number, peer} in self.links

    def _cuDevicePrimaryCtxGetState(self, number, flags, active):
        active._obj.value = self.gpus[number].in_use or self.gpus[number].retained > 0

    def _cuDevicePrimaryCtxRetain(self, context, number):
        self.gpus[number].retained += 1
        context._obj.value = 1000 + number

    def _cuDevicePrimaryCtxRelease_v2(self, number):
        self.gpus[number].retained -= 1

    def _cuCtxPushCurrent_v2(self, context):
        assert isinstance(context, c_void_p)
        self.stack.append(self.gpus[context.value - 1000])

    def _cuCtxPopCurrent_v2(self, context):
        context._obj.value = 1000 + self.stack.pop().number

    def _cuCtxEnablePeerAccess(self, context, flags):
        assert flags == 0
        peer = context.value - 1000
        if peer in self.stack[-1].reads:
            return PEER_ACCESS_ALREADY_ENABLED
        self.stack[-1].reads.add(peer)
        return None


class PlayedNvml:
    """The module pynvml.

    parts    UUIDs of GPUs that are parts of others (MIG)
    old      whether the driver has the older form of the memory only
    broken   an exception of nvmlInit
    """

    def __init__(self, gpus, parts=(), old=False, broken=None):
        self.gpus = {f"{'MIG' if each.uuid in parts else 'GPU'}-{each.uuid}": each for each in gpus}
        self.old, self.broken = old, broken
        self.opened = 0

    def __getattr__(self, name):
        real = getattr(pynvml, name)  # there is no function that is not there
        if not inspect.isfunction(real):
            return real

        def play(*arguments, **more):
            inspect.signature(real).bind(*arguments, **more)
            return getattr(self, f"_{name}")(*arguments, **more)

        return play

    def _nvmlInit(self):
        if self.broken:
            raise self.broken
        self.opened += 1

    def _nvmlShutdown(self):
        self.opened -= 1

    def _nvmlDeviceGetHandleByUUID(self, found):
        if found not in self.gpus:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return self.gpus[found]

    def _nvmlDeviceGetMemoryInfo(self, gpu, version=None):
        if gpu.fails:
            raise gpu.fails
        if self.old and version is not None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return SimpleNamespace(used=gpu.used, total=gpu.total, free=gpu.total - gpu.used)
