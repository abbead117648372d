# distutils: language = c++
# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Tracking of streams, implemented by the C++ headers beside this file."""

from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy
from libcpp cimport bool
from libcpp.vector cimport vector

import numpy as np


cdef extern from "box.hpp" namespace "tracking" nogil:
    cdef cppclass Box[Number]:
        Number x1
        Number y1
        Number x2
        Number y2

cdef extern from "assignment.hpp" namespace "tracking" nogil:
    cdef cppclass Assignment:
        void solve(const float*, size_t, size_t, int*) except +

cdef extern from "tracker.hpp" namespace "tracking" nogil:
    cdef cppclass CSettings "tracking::Settings":
        int lost_frames
        int minimum_consecutive_frames
        double activation
        float high_score
        float overlap
        float second_overlap
        float unconfirmed_overlap
        float direction_weight
        int delta_t
        bool first_frame

    cdef cppclass Detections:
        const Box[float]* boxes
        const float* scores
        const int32_t* classes
        size_t count

    cdef cppclass Rows:
        int64_t* ids
        int32_t* states
        vector[int64_t] lost_ids
        vector[Box[float]] lost_boxes
        vector[float] lost_scores
        vector[int32_t] lost_classes

    cdef cppclass Workspace:
        pass

    cdef cppclass Tracker:
        void update(const Detections&, Workspace&, Rows&, bool) except +
        size_t tracks()

cdef extern from "byte_track.hpp" namespace "tracking" nogil:
    cdef cppclass ByteTrack(Tracker):
        ByteTrack(const CSettings&) except +

cdef extern from "oc_sort.hpp" namespace "tracking" nogil:
    cdef cppclass OcSort(Tracker):
        OcSort(const CSettings&) except +

cdef extern from "bot_sort.hpp" namespace "tracking" nogil:
    cdef cppclass BotSort(Tracker):
        BotSort(const CSettings&) except +

LOST = 3  # the state of a track without a detection


cdef class Stream:
    """The tracks of one stream. Not thread-safe."""

    cdef Tracker* tracker

    def __cinit__(self):
        self.tracker = NULL

    def __dealloc__(self):
        del self.tracker

    def __len__(self):
        return self.tracker.tracks()


cdef class Streams:
    """Makes streams and tracks their frames. Not thread-safe: the streams share its buffers."""

    cdef CSettings settings
    cdef Workspace space
    cdef str kind
    cdef bint with_lost

    def __init__(self, settings):
        if settings.tracker not in ("bytetrack", "ocsort", "botsort"):
            raise ValueError(f"no tracker is called '{settings.tracker}'")
        self.kind = settings.tracker
        self.with_lost = settings.report_lost_tracks
        self.settings.lost_frames = settings.lost_frames
        self.settings.minimum_consecutive_frames = settings.minimum_consecutive_frames
        self.settings.activation = settings.track_activation_threshold
        self.settings.high_score = settings.high_conf_det_threshold
        self.settings.overlap = settings.minimum_iou_threshold
        self.settings.second_overlap = settings.minimum_iou_threshold_second_assoc
        self.settings.unconfirmed_overlap = settings.minimum_iou_threshold_unconfirmed_assoc
        self.settings.direction_weight = settings.direction_consistency_weight
        self.settings.delta_t = settings.delta_t
        self.settings.first_frame = settings.instant_first_frame_activation

    def begin(self):
        cdef Stream stream = Stream()
        if self.kind == "bytetrack":
            stream.tracker = new ByteTrack(self.settings)
        elif self.kind == "ocsort":
            stream.tracker = new OcSort(self.settings)
        else:
            stream.tracker = new BotSort(self.settings)
        return stream

    def update(self, Stream stream, const float[:, ::1] boxes, const float[::1] scores,
               const int32_t[::1] classes):
        cdef size_t count = boxes.shape[0]
        cdef Detections frame
        cdef Rows rows
        cdef int64_t[::1] ids
        cdef int32_t[::1] states
        if boxes.shape[1] != 4 or scores.shape[0] != count or classes.shape[0] != count:
            raise ValueError("boxes [n, 4] need scores [n] and classes [n]")
        found_ids = np.empty(count, np.int64)
        found_states = np.empty(count, np.int32)
        frame.count = count
        frame.boxes = NULL
        frame.scores = NULL
        frame.classes = NULL
        rows.ids = NULL
        rows.states = NULL
        if count:
            ids = found_ids
            states = found_states
            frame.boxes = <const Box[float]*>&boxes[0, 0]
            frame.scores = &scores[0]
            frame.classes = &classes[0]
            rows.ids = &ids[0]
            rows.states = &states[0]
        with nogil:
            stream.tracker.update(frame, self.space, rows, self.with_lost)
        lost = None if rows.lost_ids.empty() else _lost(rows)
        return found_ids, found_states, lost


cdef tuple _lost(Rows& rows):
    """Copy the lost tracks into arrays: ids, boxes, scores, classes."""
    cdef size_t count = rows.lost_ids.size()
    cdef int64_t[::1] ids = np.empty(count, np.int64)
    cdef float[:, ::1] boxes = np.empty((count, 4), np.float32)
    cdef float[::1] scores = np.empty(count, np.float32)
    cdef int32_t[::1] classes = np.empty(count, np.int32)
    memcpy(&ids[0], rows.lost_ids.data(), count * sizeof(int64_t))
    memcpy(&boxes[0, 0], rows.lost_boxes.data(), count * sizeof(Box[float]))
    memcpy(&scores[0], rows.lost_scores.data(), count * sizeof(float))
    memcpy(&classes[0], rows.lost_classes.data(), count * sizeof(int32_t))
    return ids.base, boxes.base, scores.base, classes.base


def wrong_box(const float[:, ::1] boxes):
    cdef Py_ssize_t i
    with nogil:
        for i in range(boxes.shape[0]):
            if not (
                isfinite(boxes[i, 0]) and isfinite(boxes[i, 1])
                and isfinite(boxes[i, 2]) and isfinite(boxes[i, 3])
                and boxes[i, 0] <= boxes[i, 2] and boxes[i, 1] <= boxes[i, 3]
            ):
                with gil:
                    return i
    return -1


def wrong_score(const float[::1] scores):
    cdef Py_ssize_t i
    for i in range(scores.shape[0]):
        if not 0 <= scores[i] <= 1:
            return i
    return -1


def assign(const float[:, ::1] similarity):
    cdef Assignment solver
    cdef int[::1] columns
    found = np.full(similarity.shape[0], -1, np.int32)
    if similarity.shape[0] and similarity.shape[1]:
        columns = found
        solver.solve(&similarity[0, 0], similarity.shape[0], similarity.shape[1], &columns[0])
    return found
