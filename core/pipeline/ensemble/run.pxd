import cython

from core.config.signature cimport Signature
from core.pipeline.ensemble.steps cimport Step
from core.pipeline.answers.split cimport wanted_tensors
from core.request cimport InferenceRequest
from core.response cimport InferenceResponse, Reply, made_response
from core.tensor cimport Tensor


@cython.final
cdef class Plan:
    cdef readonly Signature signature
    cdef readonly list steps
    cdef readonly list wanted
    cdef object infer
    cdef object ended
    cdef int most
    cdef dict ranks
    cdef dict asked


@cython.final
cdef class Branch:
    cdef readonly Branch parent
    cdef readonly list waiting
    cdef readonly dict tensors
    cdef set absent
    cdef dict children
    cdef InferenceRequest made_by
    cdef bint answered

    @cython.locals(branch=Branch, tensor=Tensor)
    cdef Tensor find(self, str name)
    @cython.locals(branch=Branch)
    cdef bint lacks(self, str name) except -1
    cdef skip(self, Step step)
    cdef keep(self, Branch child)
    cdef drop_if_done(self)
    @cython.locals(child=Branch)
    cdef let_go(self)


@cython.final
cdef class Run:
    cdef readonly Reply reply
    cdef set outstanding
    cdef Plan _plan
    cdef InferenceRequest _request
    cdef Branch _root
    cdef set _absent
    cdef list _skipped
    cdef dict _slots

    cpdef begin(self)
    @cython.locals(step=Step, child=Branch)
    cdef advance(self, Branch branch)
    cdef bint _has_inputs(self, Branch branch, Step step) except -1
    cdef _begin(self, Branch branch, Step step)
    @cython.locals(tensor=Tensor)
    cdef bint _runs(self, Branch branch, Step step) except -1
    cdef _slots_of(self, Step step)
    cdef step_ended(self, Step step)
    @cython.locals(tensor=Tensor, reply=Reply)
    cpdef _start(self, Branch branch, Step step)
    @cython.locals(asked=InferenceRequest, request=InferenceRequest)
    cdef InferenceRequest _request_of(self, Step step, dict inputs)
    @cython.locals(child=Branch)
    cdef Branch grown(self, Branch branch, Step step, InferenceRequest asked)
    @cython.locals(plan=Plan, tensor=Tensor, own=cython.bint, signature=Signature)
    cdef _answer(self, Branch branch)
    cdef _nothing_made(self)
    cdef finish_if_done(self)
    cdef fail(self, Step step, error)
    cdef _end(self, error)
    cpdef _cancel_steps(self)


@cython.final
cdef class StepAnswers:
    cdef Run _run
    cdef Branch _branch
    cdef Step _step
    cdef Reply _reply
    cdef bint _first

    @cython.locals(run=Run, step=Step)
    cpdef arrived(self, item, bint final)
    @cython.locals(into=Branch, tensor=Tensor)
    cdef _take(self, InferenceResponse response, bint final)


cpdef Tensor of_rank(Tensor tensor, int rank)
cpdef bint holds(Tensor condition) except -1
