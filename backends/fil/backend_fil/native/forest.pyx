# distutils: language = c++
# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Forest: a forest of decision trees, implemented by the C++ headers beside this file."""

from libc.stdint cimport int8_t, int32_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool
from libcpp.vector cimport vector


cdef extern from "shap.hpp" namespace "forest" nogil:
    pass

cdef extern from "layout_add.hpp" namespace "forest" nogil:
    cdef cppclass Source:
        int32_t count
        const int32_t* left
        const int32_t* right
        const int32_t* feature
        const uint8_t* default_left
        const int8_t* kind
        const int8_t* comparison
        const double* threshold
        const double* leaf
        const double* vectors
        size_t vector_count
        const uint64_t* vector_begin
        const uint64_t* vector_end
        const uint32_t* categories
        size_t category_count
        const uint64_t* category_begin
        const uint64_t* category_end
        const uint8_t* category_right
        const double* cover

    cdef cppclass Tree:
        pass

    cdef cppclass WideNode:
        pass

    cdef cppclass NarrowNode:
        pass

    cdef cppclass Layout:
        Layout(int32_t, int32_t, bool) except +
        void add(const Source&, int32_t) except +
        void finish() except +
        vector[Tree] trees
        vector[WideNode] wide
        vector[NarrowNode] narrow
        vector[float] vectors
        vector[float] cover
        vector[uint32_t] sets
        bool categorical
        int32_t deepest
        double steps_of_a_row

cdef extern from "answer.hpp" namespace "forest" nogil:
    cdef enum Link:
        pass

    cdef enum Form:
        pass

    cdef cppclass Answer:
        Link link
        Form form
        double sigmoid_alpha
        double ratio_c
        double threshold
        vector[double] scale
        vector[double] base
        int32_t width()

cdef extern from "walk.hpp" namespace "forest" nogil:
    void c_predict "forest::predict"(
        const Layout&, const Answer&, const float*, size_t, float*
    ) except +

cdef extern from "shap.hpp" namespace "forest" nogil:
    void c_shap "forest::shap"(
        const Layout&, const Answer&, const float*, size_t, float*
    ) except +

# Below this many comparisons, a prediction is shorter than releasing and taking the GIL.
cdef enum:
    WITHOUT_GIL_FROM = 4000


cdef class Forest:
    """A forest of decision trees: predictions and Shapley values of rows. Invariants: 1. no tree is added
    after finish. 2. `layout` and `answer` do not change after finish, so predict and shap are thread-safe."""

    cdef Layout* layout
    cdef Answer answer
    cdef readonly int features
    cdef readonly int classes
    cdef readonly bint has_cover
    cdef bint finished

    def __cinit__(self, int features, int classes, bint with_cover=False):
        if features < 1 or classes < 1:
            raise ValueError(f"a forest of {features} features and {classes} classes")
        self.layout = new Layout(features, classes, with_cover)
        self.features = features
        self.classes = classes
        self.has_cover = with_cover

    def __dealloc__(self):
        del self.layout

    def add(self, fields, int class_id):
        cdef Source source
        cdef const int32_t[::1] left = fields["cleft"], right = fields["cright"]
        cdef const int32_t[::1] feature = fields["split_index"]
        cdef const uint8_t[::1] default_left = fields["default_left"]
        cdef const int8_t[::1] kind = fields["node_type"], comparison = fields["cmp"]
        cdef const double[::1] threshold = fields["threshold"], leaf = fields["leaf_value"]
        cdef const double[::1] vectors = fields["leaf_vector"], cover = fields["cover"]
        cdef const uint64_t[::1] vector_begin = fields["leaf_vector_begin"]
        cdef const uint64_t[::1] vector_end = fields["leaf_vector_end"]
        cdef const uint32_t[::1] categories = fields["category_list"]
        cdef const uint64_t[::1] category_begin = fields["category_list_begin"]
        cdef const uint64_t[::1] category_end = fields["category_list_end"]
        cdef const uint8_t[::1] category_right = fields["category_list_right_child"]
        cdef Py_ssize_t count = left.shape[0]
        if self.finished:
            raise ValueError("a tree is added to a finished forest")
        if count < 1 or count >= 2**31:
            raise ValueError(f"a tree of {count} nodes")
        for name in OF_EACH_NODE:
            if len(fields[name]) != count:
                raise ValueError(f"a tree of {count} nodes has {len(fields[name])} of '{name}'")
        if cover.shape[0] not in (0, count) or (self.has_cover and cover.shape[0] == 0):
            raise ValueError(f"a tree of {count} nodes has covers of {cover.shape[0]}")
        if not -1 <= class_id < self.classes:
            raise ValueError(f"a tree of class {class_id} of {self.classes}")
        source.count = <int32_t>count
        source.left, source.right = &left[0], &right[0]
        source.feature, source.default_left = &feature[0], &default_left[0]
        source.kind, source.comparison = &kind[0], &comparison[0]
        source.threshold, source.leaf = &threshold[0], &leaf[0]
        source.vectors = &vectors[0] if vectors.shape[0] else NULL
        source.vector_count = vectors.shape[0]
        source.vector_begin, source.vector_end = &vector_begin[0], &vector_end[0]
        source.categories = &categories[0] if categories.shape[0] else NULL
        source.category_count = categories.shape[0]
        source.category_begin, source.category_end = &category_begin[0], &category_end[0]
        source.category_right = &category_right[0]
        source.cover = &cover[0] if cover.shape[0] else NULL
        with nogil:
            self.layout.add(source, class_id)

    def finish(self, *, link, form, scale, base, sigmoid_alpha=1.0, ratio_c=1.0, threshold=0.5):
        if len(scale) != self.classes or len(base) != self.classes:
            raise ValueError(f"{len(scale)} scales and {len(base)} bases of {self.classes} classes")
        self.answer.link = <Link><int>LINKS.index(link)
        self.answer.form = <Form><int>FORMS.index(form)
        self.answer.sigmoid_alpha = sigmoid_alpha
        self.answer.ratio_c = ratio_c
        self.answer.threshold = threshold
        self.answer.scale = scale
        self.answer.base = base
        self.layout.finish()
        self.finished = True

    def predict(self, const float[:, ::1] rows, float[:, ::1] out, Py_ssize_t start, Py_ssize_t stop):
        self._fits(rows, out, start, stop, self.answer.width())
        if start == stop:
            return
        if (stop - start) * self.layout.steps_of_a_row < WITHOUT_GIL_FROM:
            c_predict(self.layout[0], self.answer, &rows[start, 0], stop - start, &out[start, 0])
            return
        with nogil:
            c_predict(self.layout[0], self.answer, &rows[start, 0], stop - start, &out[start, 0])

    def shap(self, const float[:, ::1] rows, float[:, ::1] out, Py_ssize_t start, Py_ssize_t stop):
        if not self.has_cover:
            raise ValueError("the forest was made without covers")
        self._fits(rows, out, start, stop, self.classes * (self.features + 1))
        if start == stop:
            return
        with nogil:
            c_shap(self.layout[0], self.answer, &rows[start, 0], stop - start, &out[start, 0])

    cdef int _fits(self, const float[:, ::1] rows, float[:, ::1] out, Py_ssize_t start,
                   Py_ssize_t stop, Py_ssize_t width) except -1:
        if not self.finished:
            raise ValueError("the forest is not finished")
        if not 0 <= start <= stop <= rows.shape[0] or out.shape[0] != rows.shape[0]:
            raise ValueError(f"rows {start} to {stop} of {rows.shape[0]}, into {out.shape[0]}")
        if rows.shape[1] != self.features or out.shape[1] != width:
            raise ValueError(
                f"rows of {rows.shape[1]} features into {out.shape[1]} values; the forest has "
                f"{self.features} features and gives {width} values"
            )
        return 0

    @property
    def width(self):
        return self.answer.width()

    @property
    def trees(self):
        return self.layout.trees.size()

    @property
    def depth(self):
        return self.layout.deepest

    @property
    def steps_of_a_row(self):
        return self.layout.steps_of_a_row

    @property
    def is_narrow(self):
        return self.layout.wide.empty()

    @property
    def nbytes(self):
        return (
            self.layout.narrow.size() * sizeof(NarrowNode)
            + self.layout.wide.size() * sizeof(WideNode)
            + 4 * (self.layout.vectors.size() + self.layout.sets.size() + self.layout.cover.size())
        )


OF_EACH_NODE = (
    "cleft", "cright", "split_index", "default_left", "node_type", "cmp", "threshold", "leaf_value",
    "leaf_vector_begin", "leaf_vector_end", "category_list_begin", "category_list_end",
    "category_list_right_child",
)
# In the order of the enumerations of answer.hpp.
LINKS = (
    "identity", "signed_square", "hinge", "sigmoid", "exponential", "exponential_standard_ratio",
    "logarithm_one_plus_exp", "softmax", "multiclass_ova",
)
FORMS = ("values", "threshold", "argmax", "pair")
