"""What the examples of a request cost: python plugins/tfserving/benchmarks/examples.py [--examples 1000]

Prints for examples of several kinds how long they take from the bytes of a request to the inputs of a model,
in ms: the least of several repetitions. The interpreter's lock is held for most of it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from frontend_tfserving.rpc import messages
from frontend_tfserving.rpc.examples import inputs_of

from core import dtypes

REPETITIONS = 5
Row = dict[str, list[Any]]


def floats(features: int, values: int) -> Callable[[int], Row]:
    return lambda number: {f"f{at}": [float(number)] * values for at in range(features)}


def mixed(number: int) -> Row:
    """20 features: 10 floats, 5 whole numbers, 5 texts."""
    whole = {f"i{at}": [number * 97 % (3**at * 50 + 1)] for at in range(5)}
    texts = {f"t{at}": [b"%d" % (number * 31)] for at in range(5)}
    return {**floats(10, 1)(number), **whole, **texts}


KINDS = {
    "1 float": floats(1, 1),
    "20 floats": floats(20, 1),
    "784 floats in a feature": floats(1, 784),
    "20 floats, numbers and texts": mixed,
}
KEPT = {
    float: (dtypes.FP32, "float_list"),
    int: (dtypes.INT64, "int64_list"),
    bytes: (dtypes.BYTES, "bytes_list"),
}


def request_of(rows: list[Row]) -> bytes:
    found = messages.Input()
    for row in rows:
        features = found.example_list.examples.add().features.feature
        for name, values in row.items():
            getattr(features[name], KEPT[type(values[0])][1]).value.extend(values)
    encoded: bytes = found.SerializeToString()
    return encoded


def signature_of(row: Row) -> Any:
    specs = {
        name: SimpleNamespace(name=name, dims=(len(values),), dtype=KEPT[type(values[0])][0])
        for name, values in row.items()
    }
    return SimpleNamespace(name="m", inputs=specs, max_batch_size=1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--examples", type=int, default=1000)
    count = parser.parse_args().examples
    print(f"{'examples':>30} {'bytes':>10} {'ms':>8}")
    for kind, make in KINDS.items():
        rows = [make(number) for number in range(count)]
        data, signature, least = request_of(rows), signature_of(rows[0]), float("inf")
        for _ in range(REPETITIONS):
            began = time.perf_counter()
            inputs_of(messages.EncodedInput.FromString(data), signature)
            least = min(least, time.perf_counter() - began)
        print(f"{kind:>30} {len(data):10,} {1000 * least:8.2f}")


if __name__ == "__main__":
    main()
