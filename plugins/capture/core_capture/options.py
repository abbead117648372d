"""The options of a server that captures its requests."""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import invalid
from core.options import Section, group
from core.options.values import BOOL, NAMES, STRING, Form, integer, read_float

_capture = group("Capture of requests")


def _read_rate(flag: str, text: str) -> float:
    rate = read_float(flag, text)
    if not 0 < rate <= 1:
        raise invalid(f"--{flag}={text} is no share of requests: give a number above 0, up to 1")
    return rate


_RATE = Form("<float>", _read_rate)


@dataclass(kw_only=True)
class CaptureOptions(Section):
    # fmt: off
    capture: str = _capture(STRING, "",
        "Folder into which inference requests over HTTP and gRPC are recorded (docs/operate/capture.md).")
    capture_rate: float = _capture(_RATE, 1.0,
        "Share of the requests that are recorded, chosen at random.")
    capture_category: list[str] = _capture(NAMES, [],
        "Category of requests that are recorded beside inference, such as model-repository.")
    capture_model: list[str] = _capture(NAMES, [],
        "Model whose requests are recorded; * stands for any text. Default: all models.")
    capture_caller: list[str] = _capture(NAMES, [],
        "Caller whose requests are recorded; * stands for any text. Default: all callers.")
    capture_latency_ms: int = _capture(integer(0), 0,
        "Record only requests that took at least so long.")
    capture_errors: bool = _capture(BOOL, False,
        "Record only requests that failed.")
    capture_answers: bool = _capture(BOOL, False,
        "Record answers, too.")
    capture_redact_header: list[str] = _capture(NAMES, [],
        "Header whose value is not recorded. Credentials and cookies never are.")
    capture_redact_tensor: list[str] = _capture(NAMES, [],
        "Tensor, or member of JSON, whose elements are not recorded; * stands for any text.")
    capture_live: str = _capture(STRING, "",
        "Folder below which control operations may start captures. Default: that of --capture.")
    capture_drift: bool = _capture(BOOL, False,
        "Show mean, quantiles, NaN and classes of the tensors in recorded requests as metrics; without "
        "--capture, requests are not written.")
    capture_drift_secs: int = _capture(integer(1), 600,
        "Time that the metrics of --capture-drift cover, from one to two times.")
    capture_drift_class: list[str] = _capture(NAMES, [],
        "Tensor of scores: the class of a row is the index of its largest element; * stands for any text.")
    capture_max_bytes: int = _capture(integer(1 << 20), 1 << 30,
        "Size of the folder; the oldest files are removed. With workers, each gets an equal part.")
    capture_file_bytes: int = _capture(integer(1 << 16), 64 << 20,
        "Size at which a new file begins.")
    capture_request_bytes: int = _capture(integer(1), 64 << 20,
        "Bytes of one call that are recorded; later messages of it are left out.")
    capture_queue_bytes: int = _capture(integer(1), 64 << 20,
        "Bytes that may wait for the disk; further requests are not recorded, but counted.")
    # fmt: on
