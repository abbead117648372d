"""A sequence is a stream: its tracks last from its start to its end, beside those of other streams."""

import asyncio
import time
from pathlib import Path

import numpy as np
import pytest
from backend_tracker import backend, instance
from backend_tracker.live_streams import LiveStreams
from backend_tracker.scenes import scene
from backend_tracker.settings import settings_of
from core_testing.served import request_of

from core.config import ModelConfig
from core.errors import CoreError
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest

pytest_plugins = ["core_testing.plugin"]

NAME = "cars"


def inputs_of(frame):
    return {
        "boxes": frame.boxes[None],
        "scores": frame.scores[None],
        "classes": frame.classes[None],
    }


def request(inputs, sequence, *, start=False, end=False):
    made = request_of(inputs, name=NAME)
    made.correlation_id = sequence
    made.flags = SEQUENCE_START * start | SEQUENCE_END * end
    return made


def ids(answer):
    assert not isinstance(answer, CoreError), answer.message
    return answer["ids"][0].tolist()


@pytest.fixture
def serve(model_repository, serve_repository):
    """serve(config, **options): serve one model."""

    def run(config='backend: "tracker"', **options):
        model_repository.add(NAME, config)
        return serve_repository(backend, **options)

    return run


@pytest.mark.parametrize("tracker", ["bytetrack", "ocsort", "botsort"])
def test_a_sequence_gets_the_tracks_of_its_frames(serve, track, tracker):
    frames = scene(seed=1, frames=40, objects=10)
    served = serve(
        f'backend: "tracker" parameters {{ key: "tracker" value {{ string_value: "{tracker}" }} }}'
    )

    answers = served.in_sequence([inputs_of(frame) for frame in frames], 7, NAME)

    assert [ids(each) for each in answers] == track(frames, tracker)
    for answer, frame in zip(answers, frames, strict=True):
        np.testing.assert_array_equal(answer["boxes"][0], frame.boxes)
        np.testing.assert_array_equal(answer["scores"][0], frame.scores)
        np.testing.assert_array_equal(answer["classes"][0], frame.classes)


def test_streams_with_different_numbers_of_boxes_share_executions(serve, track):
    count, length = 200, 6
    scenes = {number: scene(number, length, 1 + number % 12) for number in range(1, count + 1)}
    served = serve()

    answers = served.send(
        [
            request(inputs_of(frames[i]), number, start=i == 0, end=i == length - 1)
            for i in range(length)
            for number, frames in scenes.items()
        ]
    )

    for place, frames in enumerate(scenes.values()):
        assert [ids(each) for each in answers[place::count]] == track(frames)
    assert served.executions(NAME) < count * length / 10


def test_a_sequence_id_of_text_is_a_stream_too(serve, boxes):
    served = serve()
    same = {"boxes": boxes(2)[None]}

    answers = served.send([request(same, "gate 3", start=i == 0) for i in range(3)])

    assert [ids(each) for each in answers] == [[-1, -1], [0, 1], [0, 1]]


@pytest.mark.parametrize("end", [True, False])
def test_a_sequence_that_starts_again_has_new_tracks(serve, boxes, end):
    served = serve()
    first = [request({"boxes": boxes(n)[None]}, 5, start=n == 3) for n in (3, 3, 3)]
    first[1].flags = 0
    first[2].flags = SEQUENCE_END * end

    served.send(first)
    again = served.send([request({"boxes": boxes(1)[None] + 7}, 5, start=i == 0) for i in range(2)])

    assert [ids(each) for each in again] == [[-1], [0]]


def test_scores_and_classes_may_be_left_out(serve, boxes):
    answer = serve().in_sequence([{"boxes": boxes(2)[None]}] * 2, 1, NAME)[1]

    assert answer["scores"].tolist() == [[1, 1]]
    assert answer["classes"].tolist() == [[0, 0]]
    assert answer["states"].tolist() == [[2, 2]]


def test_a_state_says_what_became_of_a_detection(serve, boxes):
    """New, seen twice, and with a score that begins no track."""
    scores = np.array([[0.9, 0.65]], np.float32)
    inputs = {"boxes": boxes(2)[None], "scores": scores}

    answers = serve().in_sequence([inputs] * 2, 1, NAME)

    assert [each["states"].tolist() for each in answers] == [[[1, 0]], [[2, 0]]]


def test_lost_tracks_are_reported_with_predicted_boxes(serve, boxes):
    served = serve(
        'backend: "tracker" parameters { key: "report_lost_tracks" value { string_value: "true" } }'
    )
    moving = [
        {"boxes": boxes(1)[None] + 5 * i, "classes": np.array([[3]], np.int32)} for i in range(9)
    ]
    nothing = {"boxes": np.empty((1, 0, 4), np.float32), "classes": np.empty((1, 0), np.int32)}

    *_, lost = served.in_sequence([*moving, nothing, nothing], 1, NAME)

    assert lost["ids"].tolist() == [[0]]
    assert lost["states"].tolist() == [[3]]
    assert lost["classes"].tolist() == [[3]]
    np.testing.assert_allclose(lost["boxes"][0], boxes(1) + 50, atol=3)


@pytest.mark.parametrize(
    "inputs, message",
    [
        ({"boxes": [[[5, 5, 1, 9]]]}, "box 0 is [5.0, 5.0, 1.0, 9.0]"),
        ({"boxes": [[[0, 0, 9, float("nan")]]]}, "x1, y1, x2, y2, finite"),
        (
            {"boxes": [[[0, 0, 9, 9]]], "scores": [[1.5]]},
            "score 0 is 1.5; it must be a number from 0 to 1",
        ),
        (
            {"boxes": [[[0, 0, 9, 9]]], "scores": [[0.5, 0.5]]},
            "'scores' has shape [1, 2] and 'boxes' has [1, 1, 4]",
        ),
        ({"boxes": [[[0, 0, 9]]]}, "boxes"),
    ],
)
def test_a_wrong_frame_fails_alone_and_changes_no_track(serve, boxes, inputs, message):
    served = serve()
    wrong = {name: np.array(value, np.float32) for name, value in inputs.items()}
    right = {"boxes": boxes(1)[None]}

    try:
        first, failed, last = served.send(
            [request(each, 9, start=i == 0) for i, each in enumerate([right, wrong, right])]
        )
    except CoreError as error:  # refused before the model
        failed, last = error, None

    assert message in failed.message
    assert NAME in failed.message
    if last is not None:
        assert (ids(first), ids(last)) == ([-1], [0])


def test_a_wrong_first_frame_still_begins_the_stream(serve, boxes):
    wrong = {"boxes": np.array([[[5, 5, 1, 9]]], np.float32)}
    served = serve()

    found = served.in_sequence(
        [wrong, {"boxes": boxes(1)[None]}, {"boxes": boxes(1)[None]}], 3, NAME
    )

    assert isinstance(found[0], CoreError)
    assert [ids(each) for each in found[1:]] == [[-1], [0]]


def test_a_model_without_batches_takes_boxes_without_a_batch(serve, boxes):
    served = serve(
        'backend: "tracker" input { name: "boxes" data_type: TYPE_FP32 dims: [ -1, 4 ] }'
    )

    answers = served.in_sequence([{"boxes": boxes(n)} for n in (3, 3, 2)], 4, NAME)

    assert [each["ids"].tolist() for each in answers] == [[-1] * 3, [0, 1, 2], [0, 1]]


def test_the_direct_strategy_works_too(serve, boxes):
    served = serve('backend: "tracker" max_batch_size: 8 sequence_batching { direct { } }')

    found = served.in_sequences([{"boxes": boxes(2)[None]}] * 3, [1, 2, 3], NAME)

    assert [[ids(each) for each in one] for one in found] == [[[-1, -1], [0, 1], [0, 1]]] * 3


def test_only_the_wanted_outputs_are_answered(serve, boxes):
    served = serve(
        'backend: "tracker" output { name: "ids" data_type: TYPE_INT64 dims: [ -1 ] } max_batch_size: 2'
    )

    assert list(served.in_sequence([{"boxes": boxes(1)[None]}], 4, NAME)[0]) == ["ids"]


def test_streams_live_in_a_child_process_too(serve, boxes):
    served = serve(
        'backend: "tracker" parameters { key: "EXECUTION_MODE" value { string_value: "process" } }'
    )

    found = served.in_sequences([{"boxes": boxes(2)[None]}] * 3, [1, 2], NAME)

    assert [[ids(each) for each in one] for one in found] == [[[-1, -1], [0, 1], [0, 1]]] * 2


# the state of idle and ended sequences ------------------------------------


def head(sequence, flags=0):
    made = InferenceRequest(NAME, {})
    made.correlation_id = sequence
    made.flags = flags
    return made


def test_a_stream_is_forgotten_when_it_is_idle_for_too_long():
    live = LiveStreams(10, object)
    for sequence, when in ((1, 0), (2, 5)):
        live.of(head(sequence, SEQUENCE_START), when)

    live.forget_idle(10)

    assert len(live) == 1
    with pytest.raises(
        CoreError, match="sequence 1 are forgotten, because it had no frame for 10 s"
    ):
        live.of(head(1), 10)


def test_a_frame_keeps_a_stream():
    live = LiveStreams(10, object)
    kept = live.of(head(1, SEQUENCE_START), 0)
    live.of(head(1), 9)

    live.forget_idle(18)

    assert live.of(head(1), 18) is kept


def test_the_last_frame_ends_a_stream():
    live = LiveStreams(10, object)
    live.of(head(1, SEQUENCE_START), 0)

    live.of(head(1, SEQUENCE_END), 1)

    assert len(live) == 0


def test_idle_streams_are_forgotten_without_further_requests(serve, boxes, monkeypatch):
    made = []

    class Watched(LiveStreams):
        def __init__(self, patience_s, begin):
            super().__init__(min(patience_s, 0.05), begin)
            self.begun = 0
            made.append(self)

        def of(self, request, now_s):
            self.begun += bool(request.flags & SEQUENCE_START)
            return super().of(request, now_s)

    monkeypatch.setattr(instance, "LiveStreams", Watched)
    monkeypatch.setattr(instance, "patience_s", lambda idle_s: 0.06)
    served = serve()
    served.send([request({"boxes": boxes(3)[None]}, n, start=True) for n in range(1, 50)])
    assert made[0].begun == 49

    limit = time.monotonic() + 20
    while len(made[0]) and time.monotonic() < limit:
        served.while_asking([], lambda server: asyncio.sleep(0.02))

    assert len(made[0]) == 0


def test_a_child_process_keeps_no_plan_for_each_request(boxes):
    """Its event loop does not run, so what is given to it would stay."""

    class Idle:
        given = 0

        def call_soon_threadsafe(self, act):
            self.given += 1

        def is_closed(self):
            return False

    model = backend.model()
    model.config = ModelConfig(name=NAME, max_batch_size=4)
    model.config.sequence_batching.max_sequence_idle_microseconds = 1000
    model.path, model.name = Path("no folder"), NAME
    model.settings = settings_of(model.config, model.path)
    running = backend.instance()
    running.model, running.loop = model, Idle()
    running.open()

    class Batch:
        requests = [request({"boxes": boxes(1)[None]}, 1, start=True)]

        def respond_all(self, answers):
            assert len(answers) == 1

    for _ in range(5):
        running.execute(Batch())

    assert running.loop.given == 1


def test_a_frame_of_too_many_detections_is_refused(serve, boxes):
    served = serve()

    (answer,) = served.send([request({"boxes": boxes(10_001)[None]}, 5, start=True)])

    assert isinstance(answer, CoreError)
    assert "10001 detections; at most 10000" in answer.message


@pytest.mark.parametrize("tracker", ["bytetrack", "ocsort", "botsort"])
def test_boxes_at_the_end_of_the_range_of_floats_stop_nothing(serve, tracker):
    served = serve(
        f'backend: "tracker" parameters {{ key: "tracker" value {{ string_value: "{tracker}" }} }}'
    )
    far = np.array([[[2e38, 0, 3e38, 1]]], np.float32)

    answers = served.in_sequence([{"boxes": far}] * 4, 9, NAME)

    assert [len(ids(each)) for each in answers] == [1] * 4
