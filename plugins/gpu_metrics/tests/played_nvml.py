"""NVML without a GPU: a machine that a test makes up, behind the functions of the real module."""

import inspect
import threading
from types import SimpleNamespace

import pynvml


class PlayedNvml:
    """Stands for the module pynvml: each call must fit the signature of the real function.

    gpus     UUID → name of a function → what it returns for this GPU, or the exception that it raises
    go_on    while it is cleared, calls do not return
    hangs    set when a call begins to wait for `go_on`
    """

    def __init__(self, *uuids):
        self.gpus = {uuid: self._gpu() for uuid in uuids}
        self.calls = []
        self.asked = threading.Semaphore(0)  # one more for each look at all GPUs
        self.go_on = threading.Event()
        self.go_on.set()
        self.hangs = threading.Event()
        self.ended = threading.Event()

    @staticmethod
    def _gpu():
        return {
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=40, memory=10),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=1000, used=250, free=750),
            "nvmlDeviceGetPowerUsage": 65_500,
            "nvmlDeviceGetPowerManagementLimit": 300_000,
            "nvmlDeviceGetTotalEnergyConsumption": 5_000_000,
        }

    def __getattr__(self, name):
        real = getattr(pynvml, name)  # there is no function that is not there
        if not inspect.isfunction(real):
            return real

        def play(*arguments, **more):
            inspect.signature(real).bind(*arguments, **more)
            self.calls.append(name)
            if not self.go_on.is_set():
                self.hangs.set()
            assert self.go_on.wait(60)
            return self._answer(name, *arguments)

        return play

    def _answer(self, name, *arguments):
        if name == "nvmlInit":
            return None
        if name == "nvmlShutdown":
            return self.ended.set()
        if name == "nvmlDeviceGetCount":
            return len(self.gpus)
        if name == "nvmlDeviceGetHandleByIndex":
            return list(self.gpus)[arguments[0]]
        if name == "nvmlDeviceGetUUID":
            return arguments[0]
        found = self.gpus[arguments[0]][name]
        if name == "nvmlDeviceGetTotalEnergyConsumption" and arguments[0] == list(self.gpus)[-1]:
            self.asked.release()
        if isinstance(found, BaseException):
            raise found
        return found
