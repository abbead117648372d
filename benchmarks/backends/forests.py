"""Forests: backend-fil compared with the libraries that trained them, treelite and ONNX Runtime.

    python -m benchmarks.backends.forests [--rounds=N] [--forest=NAME] [--json=FILE]

Three forests of data sets in scikit-learn, batches of 1, 32 and 1024 rows, one thread each. Candidates take
turns in short rounds, and each round is compared with backend-fil in the same round, so other work on the
machine affects all of them. The table gives backend-fil's CPU time per row and, for each candidate, the
median of its time divided by backend-fil's. Missing packages are skipped (onnxmltools writes the ONNX files
of the boosted forests).
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

BATCHES = (1, 32, 1024)
ROUND_S = 0.01  # approximate time of each candidate in a round
Predict = Callable[[np.ndarray], Any]


@dataclass
class Forest:
    """One forest, and the candidates that can run it."""

    name: str
    rows: np.ndarray
    candidates: dict[str, Predict] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backends.forests")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--forest", choices=sorted(FORESTS), action="append")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    results = []
    for name in options.forest or FORESTS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            forest = FORESTS[name]()
            for batch in BATCHES:
                results.append(measure(forest, batch, options.rounds))
    print(table(results))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


def measure(forest: Forest, batch: int, rounds: int) -> dict[str, Any]:
    """Return backend-fil's time per row, and each candidate's ratio to it: medians of `rounds` rounds."""
    repeats = -(-batch // len(forest.rows))
    rows = np.ascontiguousarray(np.tile(forest.rows, (repeats, 1))[:batch])
    expected = np.asarray(forest.candidates["fil"](rows), np.float32).reshape(batch, -1)
    counts = {}
    for name, predict in forest.candidates.items():
        _check(forest.name, name, np.asarray(predict(rows)), expected)
        counts[name] = max(1, round(ROUND_S / max(_seconds(predict, rows, 2), 1e-7)))
    ratios: dict[str, list[float]] = {name: [] for name in forest.candidates}
    ours = []
    for _ in range(rounds):
        taken = {
            name: _seconds(predict, rows, counts[name])
            for name, predict in forest.candidates.items()
        }
        ours.append(taken["fil"])
        for name, seconds in taken.items():
            ratios[name].append(seconds / taken["fil"])
    return {
        "forest": forest.name,
        "batch": batch,
        "fil_us_per_row": statistics.median(ours) / batch * 1e6,
        "ratios": {n: statistics.median(r) for n, r in ratios.items() if n != "fil"},
    }


def _seconds(predict: Predict, rows: np.ndarray, count: int) -> float:
    """Return the CPU time of this process for one call."""
    start = time.process_time()
    for _ in range(count):
        predict(rows)
    return (time.process_time() - start) / count


def _check(forest: str, name: str, found: np.ndarray, expected: np.ndarray) -> None:
    """Refuse a candidate with other results."""
    found = found.reshape(len(expected), -1)
    if expected.shape[1] == 1:
        found = found[:, -1:]
    if not np.allclose(found, expected, rtol=1e-3, atol=1e-4):
        raise SystemExit(f"{forest}: {name} answers {found[0]}, fil {expected[0]}")


def table(results: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for result in results for name in result["ratios"]))
    lines = ["| forest | batch | fil, µs a row | " + " | ".join(names) + " |"]
    lines.append("|---|---|---|" + "---|" * len(names))
    for result in results:
        cells = [f"{result['ratios'][n]:.1f} x" if n in result["ratios"] else "" for n in names]
        lines.append(
            f"| {result['forest']} | {result['batch']} | {result['fil_us_per_row']:.2f} | "
            + " | ".join(cells)
            + " |"
        )
    return "\n".join(lines)


def xgboost_forest() -> Forest:
    """Tumours, two classes: 200 trees of depth 6."""
    xgboost = _library("xgboost")
    data = _library("sklearn.datasets").load_breast_cancer()
    rows = data.data.astype(np.float32)
    made = xgboost.XGBClassifier(n_estimators=200, max_depth=6, learning_rate=0.05, n_jobs=1)
    made.fit(rows, data.target)
    booster = made.get_booster()
    booster.set_param({"nthread": 1})
    forest = Forest("xgboost", rows)
    _add_ours(forest, _treelite().frontend.from_xgboost(booster))
    forest.candidates["xgboost"] = booster.inplace_predict
    _add_onnx(forest, lambda width: _boosted("convert_xgboost", made, width))
    return forest


def lightgbm_forest() -> Forest:
    """Handwritten digits, ten classes: 1,000 trees of at most 31 leaves."""
    lightgbm = _library("lightgbm")
    data = _library("sklearn.datasets").load_digits()
    rows = data.data.astype(np.float32)
    made = lightgbm.LGBMClassifier(n_estimators=100, n_jobs=1, verbose=-1).fit(rows, data.target)
    booster = made.booster_
    forest = Forest("lightgbm", rows)
    _add_ours(forest, _treelite().frontend.from_lightgbm(booster))
    forest.candidates["lightgbm"] = lambda rows: booster.predict(rows, num_threads=1)
    _add_onnx(forest, lambda width: _boosted("convert_lightgbm", made, width, zipmap=False))
    return forest


def random_forest() -> Forest:
    """Handwritten digits, ten classes: 100 trees of scikit-learn, until leaves are pure."""
    ensemble = _library("sklearn.ensemble")
    data = _library("sklearn.datasets").load_digits()
    rows = data.data.astype(np.float32)
    made = ensemble.RandomForestClassifier(100, random_state=0, n_jobs=1).fit(rows, data.target)
    forest = Forest("random forest", rows)
    _add_ours(forest, _treelite().sklearn.import_model(made))
    forest.candidates["scikit-learn"] = made.predict_proba

    def convert(width: int) -> Any:
        kinds = [("x", _library("skl2onnx.common.data_types").FloatTensorType([None, width]))]
        return _library("skl2onnx").convert_sklearn(
            made, initial_types=kinds, options={id(made): {"zipmap": False}}
        )

    _add_onnx(forest, convert)
    return forest


def _library(name: str) -> Any:
    """Import a module that ships no types. Raises ImportError if it is not installed."""
    return importlib.import_module(name)


def _treelite() -> Any:
    for part in ("frontend", "gtil", "sklearn"):
        _library(f"treelite.{part}")
    return _library("treelite")


def _boosted(converter: str, made: Any, width: int, **options: Any) -> Any:
    """Return a boosted forest as ONNX."""
    types = _library("onnxmltools.convert.common.data_types")
    kinds = [("x", types.FloatTensorType([None, width]))]
    return getattr(_library("onnxmltools"), converter)(made, initial_types=kinds, **options)


def _add_ours(forest: Forest, model: Any) -> None:
    """Add backend-fil and treelite's GTIL, both with one treelite model."""
    from backend_fil.reading import describe, read_forest

    description = describe(model, forest.name)
    read = read_forest(
        model,
        description,
        forest.name,
        link=description.link,
        form="values",
        threshold=0.5,
        with_cover=False,
    )

    def ours(rows: np.ndarray) -> np.ndarray:
        out = np.empty((len(rows), read.width), np.float32)
        read.predict(rows, out, 0, len(rows))
        return out

    forest.candidates["fil"] = ours
    gtil = _treelite().gtil
    forest.candidates["treelite GTIL"] = lambda rows: gtil.predict(model, rows, nthread=1)


def _add_onnx(forest: Forest, convert: Callable[[int], Any]) -> None:
    try:
        onnxruntime = _library("onnxruntime")
        made = convert(forest.rows.shape[1])
    except ImportError as error:
        print(f"{forest.name}: no ONNX file, {error}")
        return
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(made.SerializeToString(), options)
    probabilities = session.get_outputs()[-1].name
    forest.candidates["ONNX Runtime"] = lambda rows: session.run([probabilities], {"x": rows})[0]


FORESTS = {"xgboost": xgboost_forest, "lightgbm": lightgbm_forest, "random": random_forest}

if __name__ == "__main__":
    main()
