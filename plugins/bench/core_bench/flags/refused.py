"""Flags of perf_analyzer that core bench does not take, each with what to use."""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import invalid

_TRACE = "set it on the server: docs/operate/traces.md"
_METRICS = "read them from the server's port for metrics: docs/operate/metrics.md"

FLAGS = {
    "--periodic-concurrency-range": "measure steady levels with --concurrency-range",
    "--request-period": "it belongs to --periodic-concurrency-range; use --concurrency-range",
    "--warmup-request-count": "--warmup=SECONDS sends load before the first round",
    "--profile-export-file": "--json FILE has the whole histogram of each round",
    "--model-signature-name": "it is for TensorFlow Serving, which core bench does not measure",
    "--bls-composing-models": "run core bench on each of these models; --json has what the server reports",
    "--trace-level": _TRACE,
    "--trace-rate": _TRACE,
    "--trace-count": _TRACE,
    "--log-frequency": _TRACE,
    "--collect-metrics": _METRICS,
    "--metrics-url": _METRICS,
    "--metrics-interval": _METRICS,
    "--triton-server-directory": "core bench runs core in this process: --service-kind=in_process",
    "--ssl-https-client-certificate-type": "certificates are PEM",
    "--ssl-https-private-key-type": "keys are PEM",
    "--version": "`core version` prints the version",
    "-c": "use --concurrency-range START:END with --latency-threshold",
    "-d": "use --concurrency-range START:0 with --latency-threshold",
}

SERVICES = {
    "tfserving": "core imports TensorFlow's models over ONNX: docs/start/import.md",
    "torchserve": "core serves its archives: core import",
    "dynamic_grpc": "use -i grpc for the v2 protocol",
    "tensorrtllm_engine": "serve the engine, and measure with --service-kind=openai",
}


def refuse(arguments: Sequence[str]) -> None:
    """Raise CoreError for the first flag that core bench does not take. '-c4' is not recognised as one."""
    for each in arguments:
        name = each.partition("=")[0]
        if each == "--":
            return
        if name in FLAGS:
            raise invalid(f"{name} of perf_analyzer is not supported; {FLAGS[name]}")
