# distutils: language = c++
# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Detections of one row, implemented by the C++ headers beside this file."""

from libc.stdint cimport int32_t
from libc.string cimport memcpy
from libcpp cimport bool
from libcpp.vector cimport vector

import numpy as np


cdef extern from "scores.hpp" namespace "detections" nogil:
    cdef cppclass Matrix:
        const char* data
        Py_ssize_t rows
        Py_ssize_t columns
        Py_ssize_t row_stride
        Py_ssize_t column_stride

    cdef cppclass Scores:
        Matrix classes
        const char* objects
        Py_ssize_t object_stride

cdef extern from "detections.hpp" namespace "detections" nogil:
    cdef cppclass Settings:
        float score_threshold
        float iou_threshold
        bool by_class
        bool centred
        size_t max_candidates
        size_t max_detections
        double width
        double height

    cdef cppclass CGeometry "detections::Geometry":
        double width
        double height
        double scale_x
        double scale_y
        double left
        double top

    cdef cppclass Found:
        vector[float] boxes
        vector[float] scores
        vector[int32_t] classes

    void find_all "detections::find"(
        const Matrix&, const Scores&, const Settings&, const CGeometry*, Found&
    ) except +

cdef Py_ssize_t LARGE = 4096  # scores from which other threads may run meanwhile


cdef class Detector:
    """The options of a model. Thread-safe: nothing is kept between calls."""

    cdef Settings settings

    def __init__(self, *, double score_threshold, double iou_threshold, bint by_class, bint centred,
                 size, size_t max_candidates, size_t max_detections):
        self.settings.score_threshold = <float>score_threshold
        self.settings.iou_threshold = <float>iou_threshold
        self.settings.by_class = by_class
        self.settings.centred = centred
        self.settings.max_candidates = max_candidates
        self.settings.max_detections = max_detections
        self.settings.height, self.settings.width = size or (1, 1)

    def find(self, const float[:, :] boxes, const float[:, :] scores, const float[:] objects, geometry):
        cdef Matrix places
        cdef Scores given
        cdef CGeometry original
        cdef CGeometry* to = NULL
        cdef Found found
        if boxes.shape[1] != 4 or scores.shape[0] != boxes.shape[0] or not scores.shape[1]:
            raise ValueError("boxes [n, 4] need scores [n, classes] of at least one class")
        if objects is not None and objects.shape[0] != boxes.shape[0]:
            raise ValueError("boxes [n, 4] need objects [n]")
        if geometry is not None:
            original.width, original.height = geometry.width, geometry.height
            original.scale_x, original.scale_y = geometry.scale_x, geometry.scale_y
            original.left, original.top = geometry.left, geometry.top
            to = &original
        places = matrix(boxes)
        given.classes = matrix(scores)
        given.objects = NULL
        given.object_stride = 0
        if objects is not None and objects.shape[0]:
            given.objects = <const char*>&objects[0]
            given.object_stride = objects.strides[0]
        if scores.shape[0] * scores.shape[1] < LARGE:
            find_all(places, given, self.settings, to, found)
        else:
            with nogil:
                find_all(places, given, self.settings, to, found)
        return arrays(found)


cdef Matrix matrix(const float[:, :] array) noexcept:
    cdef Matrix found
    found.data = <const char*>&array[0, 0] if array.shape[0] else NULL
    found.rows, found.columns = array.shape[0], array.shape[1]
    found.row_stride, found.column_stride = array.strides[0], array.strides[1]
    return found


cdef tuple arrays(Found& found):
    """Copy what is found into arrays: boxes, scores, classes."""
    cdef size_t count = found.scores.size()
    cdef float[:, ::1] boxes
    cdef float[::1] scores
    cdef int32_t[::1] classes
    all_boxes = np.empty((count, 4), np.float32)
    all_scores = np.empty(count, np.float32)
    all_classes = np.empty(count, np.int32)
    if count:
        boxes, scores, classes = all_boxes, all_scores, all_classes
        memcpy(&boxes[0, 0], found.boxes.data(), count * 4 * sizeof(float))
        memcpy(&scores[0], found.scores.data(), count * sizeof(float))
        memcpy(&classes[0], found.classes.data(), count * sizeof(int32_t))
    return all_boxes, all_scores, all_classes
