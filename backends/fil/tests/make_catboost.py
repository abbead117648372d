"""Train small models of CatBoost, and write them with what it predicts: python make_catboost.py [FOLDER]

It needs catboost. The results are in data/catboost: each model in both forms, and expected.npz, which has the
rows and, for each model, the default prediction, the probabilities and the Shapley values.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import catboost
import numpy as np

FOLDER = Path(__file__).parent / "data" / "catboost"
QUIET = {"verbose": 0, "thread_count": 1, "allow_writing_files": False, "random_seed": 1}
MODELS: dict[str, dict[str, Any]] = {
    "binary": {},
    "missing_above": {"nan_mode": "Max"},
    "leafwise": {"grow_policy": "Lossguide", "max_leaves": 9, "depth": 6},
    "depthwise": {"grow_policy": "Depthwise"},
    "threshold": {},
    "classes": {"loss_function": "MultiClass"},
    "classes_leafwise": {"loss_function": "MultiClass", "grow_policy": "Lossguide"},
    "one_vs_all": {"loss_function": "MultiClassOneVsAll"},
    "numbers": {"loss_function": "RMSE"},
    "counts": {"loss_function": "Poisson"},
    "quantile": {"loss_function": "Quantile:alpha=0.8"},
    "ranks": {"loss_function": "QueryRMSE"},
}
CLASSIFIERS = ("binary", "missing_above", "leafwise", "depthwise", "threshold", "classes")
CLASSIFIERS += ("classes_leafwise", "one_vs_all")
REFUSED = ("one_hot", "counters", "targets")


def rows_of(seed: int = 0, count: int = 200) -> np.ndarray:
    """Return rows FP32[count, 6] of numbers, some of which are missing; the last feature is useless."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(count, 6)).astype(np.float32)
    rows[:, 2] = random.integers(0, 4, count)
    rows[random.random(rows.shape) < 0.1] = np.nan
    rows[:, 5] = 1
    return rows


def trained(name: str) -> Any:
    """Return the model of a name in MODELS."""
    options = {"iterations": 6, "depth": 3, **MODELS[name], **QUIET}
    rows = rows_of()
    filled = np.nan_to_num(rows, nan=0.5)
    score = filled[:, 0] - filled[:, 1] * filled[:, 2] + 0.3 * filled[:, 3]
    if name in CLASSIFIERS:
        labels = (
            np.digitize(score, (-1, 1)) if "loss_function" in options else (score > 0).astype(int)
        )
        model = catboost.CatBoostClassifier(**options).fit(rows, labels)
        if name == "threshold":
            model.set_probability_threshold(0.3)
        return model
    if name == "ranks":
        pool = catboost.Pool(rows, score, group_id=np.arange(len(rows)) // 10)
        return catboost.CatBoost(options).fit(pool)
    labels = np.round(np.exp(score.clip(-2, 2))) if name == "counts" else 100 + 20 * score
    return catboost.CatBoostRegressor(**options).fit(rows, labels)


def refused(name: str) -> Any:
    """Return a model that the backend does not serve."""
    rows = np.nan_to_num(rows_of())
    labels = (rows[:, 0] > 0).astype(int)
    if name == "targets":
        both = np.stack([rows[:, 0], rows[:, 1]], 1)
        return catboost.CatBoostRegressor(iterations=3, loss_function="MultiRMSE", **QUIET).fit(
            rows, both
        )
    coloured = [[f"{'red' if row[0] > 0 else 'blue'}", f"{int(row[2])}", *row[3:5]] for row in rows]
    pool = catboost.Pool(
        coloured, labels, cat_features=[0, 1], feature_names=["colour", "size", "x", "y"]
    )
    most = {"one_hot_max_size": 10 if name == "one_hot" else 1}
    return catboost.CatBoostClassifier(iterations=3, depth=2, **most, **QUIET).fit(pool)


def predictions(model: Any, name: str, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return what catboost says of rows: its default prediction, probabilities and Shapley values."""
    found = {"prediction": np.asarray(model.predict(rows), np.float64).reshape(len(rows))}
    if name in CLASSIFIERS:
        found["probabilities"] = model.predict_proba(rows)
    pool = catboost.Pool(rows, group_id=np.arange(len(rows)) // 10)
    found["shap"] = model.get_feature_importance(pool, type="ShapValues", shap_calc_type="Regular")
    return found


def save(model: Any, folder: Path, name: str) -> None:
    for suffix, form in (("cbm", "cbm"), ("json", "json")):
        pool = {"pool": catboost.Pool([["red", "1", 0, 0]], cat_features=[0, 1])}
        needs_pool = form == "json" and name in ("one_hot", "counters")
        file = folder / f"{name}.{suffix}"
        model.save_model(str(file), format=form, **(pool if needs_pool else {}))
        if form == "json":  # on one line: CatBoost writes a line for each number
            file.write_text(json.dumps(json.loads(file.read_text()), separators=(",", ":")) + "\n")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    rows = rows_of(seed=1, count=60)
    expected = {"rows": rows}
    for name in MODELS:
        model = trained(name)
        save(model, folder, name)
        for key, value in predictions(model, name, rows).items():
            expected[f"{name}.{key}"] = value
    for name in REFUSED:
        save(refused(name), folder, name)
    np.savez_compressed(folder / "expected.npz", **expected)


if __name__ == "__main__":
    main()
