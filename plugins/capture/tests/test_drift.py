"""Sketches are as accurate as they say, stay small, and tell change from chance."""

import json
import math
import time

import numpy as np
import pytest
from core_capture.drift.classes import MOST, ClassSketch
from core_capture.drift.compare import compare
from core_capture.drift.numbers import ACCURACY, MOST_CELLS, NumberSketch
from core_capture.drift.sketches import Key, Sketches
from core_capture.recording.drift_meter import DriftMeter
from core_capture.recording.files import CaptureFiles
from core_capture.records.record import Record, RecordedMessage, encode

from .test_control import control

RANDOM = np.random.default_rng(7)
SHARES = (0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0)
NUMBERS = {
    "normal": RANDOM.normal(size=20_000),
    "lognormal": RANDOM.lognormal(3, 2, 20_000),
    "negative": -RANDOM.exponential(1e-6, 20_000),
    "whole": RANDOM.integers(-5, 6, 20_000),
    "huge": RANDOM.normal(size=20_000) * 1e30,
    "one": np.array([3.5]),
    "zeros": np.zeros(10),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_quantiles_mean_and_deviation(name):
    numbers = NUMBERS[name]
    sketch = NumberSketch()
    for part in np.array_split(numbers, 7):
        sketch.add(part)

    expected = np.quantile(numbers, SHARES, method="lower")
    np.testing.assert_allclose(sketch.quantiles(SHARES), expected, rtol=2 * ACCURACY, atol=1e-29)
    assert math.isclose(sketch.mean, numbers.mean(), rel_tol=1e-9, abs_tol=1e-9)
    assert math.isclose(sketch.deviation, numbers.std(), rel_tol=1e-6, abs_tol=1e-6)
    assert (sketch.least, sketch.largest) == (numbers.min(), numbers.max())


def test_numbers_that_are_none_are_shares():
    sketch = NumberSketch()
    sketch.add(np.array([1, np.nan, np.inf, -np.inf, 3], np.float32))

    assert (sketch.count, sketch.nan_share, sketch.infinite, sketch.mean) == (5, 0.2, 2, 2.0)


@pytest.mark.filterwarnings("ignore:overflow")
def test_numbers_whose_squares_are_too_large():
    sketch = NumberSketch()
    sketch.add(np.array([1e200, 3e200]))

    assert (sketch.mean, sketch.deviation) == (2e200, math.inf)


def test_an_empty_sketch():
    assert math.isnan(NumberSketch().mean)
    assert all(map(math.isnan, NumberSketch().quantiles(SHARES)))


def test_sketches_are_merged():
    parts = [NumberSketch() for _ in range(3)]
    for sketch, part in zip(parts, np.array_split(NUMBERS["normal"], 3), strict=True):
        sketch.add(part)
    whole, merged = NumberSketch(), NumberSketch()
    whole.add(NUMBERS["normal"])
    for each in parts:
        merged.merge(each)

    assert merged.cells == whole.cells
    assert merged.quantiles(SHARES) == whole.quantiles(SHARES)


def test_a_sketch_stays_small_and_loses_small_numbers_first():
    numbers = np.exp(RANDOM.uniform(-65, 65, 200_000))
    sketch = NumberSketch()
    for part in np.array_split(numbers, 10):
        sketch.add(part)

    assert len(sketch.cells) <= MOST_CELLS
    np.testing.assert_allclose(sketch.quantiles([0.9])[0], np.quantile(numbers, 0.9), rtol=0.03)


def test_classes_are_counted_until_there_are_too_many():
    sketch = ClassSketch()
    sketch.add(["a", "b", "a", "x" * 1000])
    assert sketch.shares() == {"a": 0.5, "b": 0.25, "x" * 64: 0.25}

    sketch.add(map(str, range(MOST)))
    assert (sketch.open, sketch.counts, sketch.shares()) == (True, {}, {})


# records --------------------------------------------------------------------------------


def record(inputs, outputs=None, number=0, **more):
    def text(name, tensors, **more):
        rows = [
            {"name": n, "datatype": kind, "shape": list(a.shape), "data": a.ravel().tolist()}
            for n, (kind, a) in tensors.items()
        ]
        return json.dumps({name: rows, **more}).encode()

    answers = []
    if outputs is not None:
        answers.append(RecordedMessage(2, text("outputs", outputs, model_name="m")))
    head = "POST /v2/models/m/infer HTTP/1.1\r\n"
    received = [RecordedMessage(1, text("inputs", inputs))]
    return Record(
        *(number, "http", head, "m"),
        status=200,
        received=received,
        sent=answers,
        has_answer=outputs is not None,
        **more,
    )


def floats(*shape, mean=0.0):
    return "FP32", RANDOM.normal(mean, 1, shape).astype(np.float32)


def window(count=20, inputs=None, outputs=None, predicted=()):
    found = Sketches(predicted)
    for _ in range(count):
        found.add(record(inputs() if inputs else {"x": floats(10)}, outputs and outputs()))
    return found


def test_the_same_distribution_does_not_drift():
    found = [compare(window(), window())[0].psi for _ in range(20)]

    assert max(found) < 0.2 and sorted(found)[10] < 0.05


def test_a_shift_drifts():
    (found,) = compare(window(), window(inputs=lambda: {"x": floats(10, mean=1)}))

    assert found.key == Key("m", "", "input", "x")
    assert found.psi > 0.5 and found.drifts(0.2)


def test_nan_drift():
    a, b = NumberSketch(), NumberSketch()
    a.add(RANDOM.normal(size=200))
    b.add(np.where(RANDOM.random(200) < 0.2, np.nan, RANDOM.normal(size=200)))
    before, now = window(0), window(0)
    before._of(Key("m", "", "input", "x"), "FP32").numbers.merge(a)
    now._of(Key("m", "", "input", "x"), "FP32").numbers.merge(b)
    assert compare(before, now)[0].psi > 0.2


def test_predicted_classes_drift():
    def scores(favourite):
        _, array = floats(10, 3)
        array[:, favourite] += 5
        return {"scores": ("FP32", array)}

    before = window(outputs=lambda: scores(0), predicted=["sco*"])
    now = window(outputs=lambda: scores(1), predicted=["sco*"])

    found = {each.key.tensor: each for each in compare(before, now)}
    assert found["scores"].psi > 1
    assert found["scores"].before.classes.counts.most_common(1)[0][0] == "0"
    assert found["x"].psi < 0.1


def test_words_have_lengths_and_classes():
    def words(*texts):
        return {"t": ("BYTES", RANDOM.choice(texts, 10).astype(object))}

    before = window(inputs=lambda: words("yes", "no"))
    now = window(inputs=lambda: words("yes", "maybe"))

    (found,) = compare(before, now)
    assert found.drifts(0.2)
    assert set(found.now.classes.counts) == {"yes", "maybe"}


def test_few_elements_and_missing_tensors():
    few = compare(window(1), window(1))[0]
    absent = compare(window(), window(inputs=lambda: {"z": floats(10)}))

    assert math.isnan(few.psi) and not few.drifts(0.2)
    assert {(each.key.tensor, each.drifts(0.2)) for each in absent} == {("x", True), ("z", True)}


def test_failed_redacted_and_other_calls_have_no_sketch():
    found = Sketches()
    bad = record({"x": floats(1)})
    bad.status = 500
    hidden = record({"x": floats(1), "y": floats(1)}, redacted=["x"])
    other = Record(0, "http", "POST /v2/models/m/generate HTTP/1.1\r\n", "m", status=200)
    other.received = [RecordedMessage(0, b'{"text_input": "a"}')]
    for each in (bad, hidden, other):
        found.add(each)

    assert [key.tensor for key in found.found] == ["y"]


def test_a_large_tensor_is_sampled():
    found = Sketches()
    found.add(record({"x": floats(50_000)}))

    (sketch,) = found.found.values()
    assert sketch.numbers.count == 4096


# metrics ------------------------------------------------------------------------------


class Clock:
    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        self.now_s += 0.001
        return self.now_s


def test_a_meter_spends_a_tenth_of_the_time_and_forgets_old_windows():
    clock = Clock()
    meter = DriftMeter([], 100.0, clock)

    for _ in range(1000):
        meter.add(record({"x": ("FP32", np.ones(1, np.float32))}))
    (facts,) = meter.facts()
    assert facts.elements < 300  # of 1000: each call of the clock is a millisecond
    clock.now_s += 150
    meter.add(record({"x": ("FP32", np.full(1, 5, np.float32))}))
    assert 1 < meter.facts()[0].mean < 5  # of two windows
    clock.now_s += 500
    meter.add(record({"x": ("FP32", np.full(1, 5, np.float32))}))
    assert (meter.facts()[0].mean, meter.facts()[0].elements) == (5, 1)
    clock.now_s += 250
    assert not meter.facts()  # nothing has come since


def test_metrics_without_files(capture):
    client = capture(capture="", capture_drift=True)
    client.infer(1.0, 2.0, 3.0)
    client.server.metrics()
    end = time.monotonic() + 20
    while not (found := metrics(client)) and time.monotonic() < end:
        time.sleep(0.01)

    labels = {"model": "double", "version": "", "side": "input", "tensor": "x", "worker": "0"}
    assert found["core_tensor_mean"] == [(labels, 2.0)]
    assert found["core_tensor_elements"] == [(labels, 3)]
    assert found["core_tensor_nan_share"] == [(labels, 0)]
    assert (labels | {"quantile": "0.5"}, 2.0) in [
        (each, round(value, 1)) for each, value in found["core_tensor_quantile"]
    ]
    assert not client.folder.exists()


def test_metrics_go_on_when_a_capture_cannot_begin(capture, tmp_path):
    (tmp_path / "file").touch()
    client = capture(capture="", capture_drift=True, capture_live=str(tmp_path / "file"))
    assert control(client, "start", {"name": "a"})[0] == 503

    client.infer(7.0)
    end = time.monotonic() + 20
    while not (found := metrics(client)) and time.monotonic() < end:
        time.sleep(0.01)
    assert [value for _, value in found["core_tensor_mean"]] == [7.0]


def metrics(client):
    found = {}
    for family in client.server.metrics():
        if family.name.startswith("core_tensor_") and family.samples:
            found[family.name] = [(dict(each.labels), each.value) for each in family.samples]
    return found


# the command ------------------------------------------------------------------------------


@pytest.fixture
def traffic(tmp_path):
    """Two captures: of an hour with a mean of 0, and of one with a mean of 1."""
    for name, start_s, mean in (("a", 0, 0.0), ("b", 3600, 1.0)):
        files = CaptureFiles(str(tmp_path / name), 0, 1 << 24, 1 << 24)
        for number in range(40):
            one = record({"x": floats(10, mean=mean)}, number=int((start_s + number * 60) * 1e9))
            files.write(encode(one))
        files.close()
    return tmp_path


def test_two_captures(traffic, command):
    done = command("capture", "drift", traffic / "a", traffic / "b")
    same = command("capture", "drift", traffic / "a", traffic / "a")

    assert (done.status, same.status) == (1, 0)
    first, before, now = done.out.splitlines()
    assert first.startswith("model m, input x: drifts, PSI ")
    assert before.startswith("  before  400 elements, mean ")
    assert now.startswith("  now     400 elements, mean ")
    assert "stays" in same.out


def test_two_windows(traffic, command):
    first, rest = (
        f"{traffic / 'a'}@{each}" for each in ("..1970-01-01T00:20", "1970-01-01T00:20..")
    )

    done = command("capture", "drift", first, rest, "--json", "--threshold", 1)

    (row,) = json.loads(done.out)
    assert (done.status, row["before"]["elements"], row["now"]["elements"]) == (0, 200, 200)
    assert (row["model"], row["side"], row["drifts"]) == ("m", "input", False)
    assert command("capture", "drift", f"{traffic / 'a'}@x..y", first).status == 1
