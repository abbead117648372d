"""Helm's own library, in a process of its own.

The library is written in Go. Its runtime interrupts all threads of a process by a signal, which it handles on
the stack that faulthandler has made for signals; with the registers of AMX, that stack is too small.
"""

from __future__ import annotations

import atexit
import functools
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "core"


@functools.cache
def _process() -> ProcessPoolExecutor:
    process = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    atexit.register(process.shutdown)
    return process


def render(values: dict[str, Any], name: str) -> dict[str, str]:
    """Return the text of each template of the chart by its path, for a release in the namespace `models`."""
    return _process().submit(_render, values, name).result()


def lint() -> dict[str, Any]:
    """Return what `helm lint` finds in the chart: `errors` and `messages`."""
    return _process().submit(_lint).result()


def refusal(values: dict[str, Any]) -> str:
    """Return why the chart's schema refuses some values; "" where it does not."""
    return _process().submit(_refusal, values).result()


def _render(values: dict[str, Any], name: str) -> dict[str, str]:
    import helm_python

    with helm_python.Chart.load(str(CHART)) as chart:
        chart.validate_schema(values)
        return dict(chart.render(values, name=name, namespace="models"))


def _lint() -> dict[str, Any]:
    import helm_python

    return dict(helm_python.lint(str(CHART)))


def _refusal(values: dict[str, Any]) -> str:
    import helm_python

    with helm_python.Chart.load(str(CHART)) as chart:
        try:
            chart.validate_schema(chart.merge_values(values))
        except helm_python.HelmError as error:
            return str(error)
    return ""
