"""core capture export: input data for perf_analyzer and core bench."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import orjson

from core_capture.records.reader import CaptureReader
from core_capture.tensors.input_data import InputData

summary = "write the requests for one model as input data of perf_analyzer, in JSON"


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--model", default="", help="name of the model; may be left out if the capture has only one"
    )
    add(
        "--rows",
        action="store_true",
        help="make a step of each row: for models with max_batch_size above 0",
    )
    add("--limit", type=int, default=0, metavar="N", help="only the first N requests")
    add(
        "--output",
        "-o",
        default="-",
        metavar="FILE",
        help="file to write; - is the standard output (%(default)s)",
    )


def run(reader: CaptureReader, namespace: argparse.Namespace) -> int:
    data = InputData.of(reader, namespace.model, rows=namespace.rows, limit=namespace.limit)
    text = orjson.dumps({"data": data.document()}, option=orjson.OPT_APPEND_NEWLINE)
    if namespace.output == "-":
        sys.stdout.buffer.write(text)
    else:
        Path(namespace.output).write_bytes(text)
    print(data.summary(), file=sys.stderr)
    return 0
