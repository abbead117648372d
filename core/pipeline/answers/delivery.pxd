import cython

from core.batch cimport Batch, made_batch
from core.config.signature cimport Signature
from core.native.clock cimport Clock
from core.native.distribution cimport Histogram
from core.pipeline.intake cimport Intake
from core.pipeline.batching.queue cimport Waiting
from core.pipeline.answers.split cimport (
    plain, split, tensors_fit, wanted_tensors, whole_tensors, without_states)
from core.request cimport InferenceRequest
from core.response cimport InferenceResponse, made_response
from core.telemetry.statistics cimport Statistics


@cython.final
cdef class Terms:
    cdef public Signature signature
    cdef public str name
    cdef public object version
    cdef public bint decoupled
    cdef public bint stateful
    cdef public tuple specs
    cdef public bint reshapes
    cdef public bint checks_outputs
    cdef public str output_hint
    cdef public Statistics statistics
    cdef public Histogram first_response
    cdef public object loop
    cdef public Intake intake
    cdef public object put_back
    cdef public object batch_done
    cdef public Clock clock


@cython.final
cdef class Held:
    cdef public Py_ssize_t count
    cdef public object on_none

    cdef answered(self)


@cython.final
cdef class BatchDelivery:
    cdef public Terms terms
    cdef Held _held
    cdef public Batch batch
    cdef list _waiting
    cdef list _rescheduled
    cdef object _items
    cdef list _outcomes
    cdef set _deferred
    cdef bint _holding
    cdef bint _scheduled
    cdef Py_ssize_t _left
    cdef bint _released

    @cython.locals(entry=Waiting, requests=list)
    cdef _begin(self, list waiting, Terms terms, Held held)
    @cython.locals(request=InferenceRequest, terms=Terms, outputs=list)
    cdef InferenceResponse _response(self, Py_ssize_t i, list tensors, parameters)
    @cython.locals(waiting=Waiting)
    cdef list _stateless(self, Py_ssize_t i, list tensors)
    @cython.locals(waiting=Waiting)
    cdef InferenceRequest _request(self, Py_ssize_t i)
    @cython.locals(response=InferenceResponse)
    cdef _answer(self, Py_ssize_t i, list tensors)
    cdef _put(self, Py_ssize_t i, item, bint final, bint failure)
    @cython.locals(i=cython.Py_ssize_t, terms=Terms, tensors=list)
    cpdef respond_all(self, list answers)
    cdef _refuse(self, Py_ssize_t i, list tensors, bint final)
    @cython.locals(i=cython.Py_ssize_t)
    cdef _fail_forgotten(self)
    @cython.locals(i=cython.Py_ssize_t)
    cdef _fail_open(self, error)
    cpdef fail(self, Py_ssize_t i, error, bint final, bint failure)
    @cython.locals(batch=Batch, terms=Terms)
    cpdef executed(self, outputs, error)
    @cython.locals(batch=Batch, start=cython.longlong, end=cython.longlong, compute_start=cython.longlong,
                   compute_end=cython.longlong, i=cython.Py_ssize_t, outcomes=list)
    cpdef release(self)
    @cython.locals(i=cython.Py_ssize_t, final=cython.bint, failure=cython.bint)
    cpdef _hand_over(self)
    @cython.locals(waiting=Waiting, counts=cython.bint)
    cdef _give(self, Py_ssize_t i, item, bint final, bint failure)
    cdef _let_go(self)
    @cython.locals(batch=Batch, request=InferenceRequest, terms=Terms,
                   now=cython.longlong, total=cython.longlong, start=cython.longlong, end=cython.longlong,
                   compute_start=longlong, compute_end=longlong)
    cdef _count(self, Waiting waiting, bint failure)

    @cython.locals(waiting=Waiting, waited_ns=cython.longlong)
    cdef _count_first(self, Py_ssize_t i, item, Histogram times)


@cython.locals(delivery=BatchDelivery)
cpdef BatchDelivery made_delivery(list waiting, Terms terms, Held held)
