"""The enumerations, exceptions and the log, by the names that Triton's C interface gives them."""

from tritonserver._api._enums import DataType as TRITONSERVER_DataType
from tritonserver._api._enums import InstanceGroupKind as TRITONSERVER_InstanceGroupKind
from tritonserver._api._enums import LogFormat as TRITONSERVER_LogFormat
from tritonserver._api._enums import LogLevel as TRITONSERVER_LogLevel
from tritonserver._api._enums import MemoryType as TRITONSERVER_MemoryType
from tritonserver._api._enums import MetricFormat as TRITONSERVER_MetricFormat
from tritonserver._api._enums import MetricKind as TRITONSERVER_MetricKind
from tritonserver._api._enums import ModelBatchFlag as TRITONSERVER_ModelBatchFlag
from tritonserver._api._enums import ModelControlMode as TRITONSERVER_ModelControlMode
from tritonserver._api._enums import ModelTxnPropertyFlag as TRITONSERVER_ModelTxnPropertyFlag
from tritonserver._api._enums import RateLimitMode as TRITONSERVER_RateLimitMode
from tritonserver._api._enums import RequestFlag as TRITONSERVER_RequestFlag
from tritonserver._api._errors import (
    AlreadyExistsError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    TritonError,
    UnavailableError,
    UnknownError,
    UnsupportedError,
)
from tritonserver._api._logging import log_message as TRITONSERVER_LogMessage
from tritonserver._api._metrics import Metric as TRITONSERVER_Metric
from tritonserver._api._metrics import MetricFamily as TRITONSERVER_MetricFamily

__all__ = [
    "AlreadyExistsError",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "TRITONSERVER_DataType",
    "TRITONSERVER_InstanceGroupKind",
    "TRITONSERVER_LogFormat",
    "TRITONSERVER_LogLevel",
    "TRITONSERVER_LogMessage",
    "TRITONSERVER_MemoryType",
    "TRITONSERVER_Metric",
    "TRITONSERVER_MetricFamily",
    "TRITONSERVER_MetricFormat",
    "TRITONSERVER_MetricKind",
    "TRITONSERVER_ModelBatchFlag",
    "TRITONSERVER_ModelControlMode",
    "TRITONSERVER_ModelTxnPropertyFlag",
    "TRITONSERVER_RateLimitMode",
    "TRITONSERVER_RequestFlag",
    "TritonError",
    "UnavailableError",
    "UnknownError",
    "UnsupportedError",
]
