import cython

from core.config.signature cimport Signature
from core.pipeline.ensemble.plan cimport Branch, EnsemblePlan
from core.pipeline.ensemble.steps cimport Step
from core.pipeline.answers.split cimport wanted_tensors
from core.request cimport InferenceRequest
from core.response cimport InferenceResponse, Reply, new_response
from core.tensor cimport Tensor


@cython.final
cdef class Run:
    cdef readonly Reply reply
    cdef set outstanding
    cdef EnsemblePlan _plan
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
    @cython.locals(request=InferenceRequest)
    cdef InferenceRequest _request_of(self, Step step, dict inputs)
    @cython.locals(child=Branch)
    cdef Branch new_branch(self, Branch branch, Step step, InferenceRequest source)
    @cython.locals(plan=EnsemblePlan, tensor=Tensor, own=cython.bint, signature=Signature)
    cdef _answer(self, Branch branch)
    cdef _no_output(self)
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
