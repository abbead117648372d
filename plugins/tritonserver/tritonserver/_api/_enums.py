"""The enumerations. Numbers are those of Triton's C interface."""

from __future__ import annotations

import enum


class TritonEnum(enum.Enum):
    """Base of the enumerations: `int(member)` is the number."""

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return int(self.value)


class DataType(TritonEnum):
    """Datatype of a tensor. From BOOL on, numbers are those of core.dtypes."""

    INVALID = 0
    BOOL = 1
    UINT8 = 2
    UINT16 = 3
    UINT32 = 4
    UINT64 = 5
    INT8 = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    FP16 = 10
    FP32 = 11
    FP64 = 12
    BYTES = 13
    BF16 = 14


class MemoryType(TritonEnum):
    """Where the memory of a tensor is."""

    CPU = 0
    CPU_PINNED = 1
    GPU = 2


class ModelControlMode(TritonEnum):
    """Which models a server loads."""

    NONE = 0
    POLL = 1
    EXPLICIT = 2


class RateLimitMode(TritonEnum):
    OFF = 0
    EXEC_COUNT = 1


class InstanceGroupKind(TritonEnum):
    AUTO = 0
    CPU = 1
    GPU = 2
    MODEL = 3


class LogLevel(TritonEnum):
    INFO = 0
    WARN = 1
    ERROR = 2
    VERBOSE = 3


class LogFormat(TritonEnum):
    DEFAULT = 0
    ISO8601 = 1


class ModelBatchFlag(TritonEnum):
    """Whether the first dimension of a model's tensors is the batch."""

    UNKNOWN = 1
    FIRST_DIM = 2


class ModelTxnPropertyFlag(TritonEnum):
    """Whether a model gives one response for each request, or any number."""

    ONE_TO_ONE = 1
    DECOUPLED = 2


class MetricKind(TritonEnum):
    COUNTER = 0
    GAUGE = 1


class MetricFormat(TritonEnum):
    PROMETHEUS = 0


class RequestFlag(TritonEnum):
    """Bits of `InferenceRequest.flags`."""

    SEQUENCE_START = 1
    SEQUENCE_END = 2


class DLDeviceType(enum.IntEnum):
    """Kind of a device, by DLPack."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
