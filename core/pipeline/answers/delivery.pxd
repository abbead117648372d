import cython

from core.batch cimport Batch, new_batch
from core.pipeline.batching.queue cimport QueuedRequest
from core.pipeline.answers.context cimport DeliveryContext, OutstandingBatches
from core.pipeline.answers.split cimport (
    plain, split, tensors_fit, wanted_tensors, whole_tensors, without_states)
from core.request cimport InferenceRequest
from core.response cimport InferenceResponse, new_response


@cython.final
cdef class BatchDelivery:
    cdef public DeliveryContext context
    cdef OutstandingBatches _outstanding
    cdef public Batch batch
    cdef list _waiting
    cdef list _rescheduled
    cdef object _items
    cdef list _outcomes
    cdef set _deferred
    cdef bint _deferring
    cdef bint _scheduled
    cdef Py_ssize_t _left
    cdef bint _released

    @cython.locals(entry=QueuedRequest, requests=list)
    cdef _begin(self, list waiting, DeliveryContext context, OutstandingBatches outstanding)
    @cython.locals(request=InferenceRequest, context=DeliveryContext, outputs=list)
    cdef InferenceResponse _response(self, Py_ssize_t i, list tensors, parameters)
    @cython.locals(waiting=QueuedRequest)
    cdef list _without_states(self, Py_ssize_t i, list tensors)
    @cython.locals(waiting=QueuedRequest)
    cdef InferenceRequest _request(self, Py_ssize_t i)
    @cython.locals(response=InferenceResponse)
    cdef _answer(self, Py_ssize_t i, list tensors)
    cdef _put(self, Py_ssize_t i, item, bint final, bint failure)
    @cython.locals(i=cython.Py_ssize_t, context=DeliveryContext, tensors=list)
    cpdef respond_all(self, list answers)
    cdef _refuse(self, Py_ssize_t i, list tensors, bint final)
    @cython.locals(i=cython.Py_ssize_t)
    cdef _fail_unanswered(self)
    @cython.locals(i=cython.Py_ssize_t)
    cdef _fail_open(self, error)
    cpdef fail(self, Py_ssize_t i, error, bint final, bint failure)
    @cython.locals(batch=Batch, context=DeliveryContext)
    cpdef executed(self, outputs, error)
    @cython.locals(batch=Batch, start=cython.longlong, end=cython.longlong, compute_start=cython.longlong,
                   compute_end=cython.longlong, i=cython.Py_ssize_t, outcomes=list)
    cpdef release(self)
    @cython.locals(i=cython.Py_ssize_t, final=cython.bint, failure=cython.bint)
    cpdef _send_items(self)
    @cython.locals(waiting=QueuedRequest, counts=cython.bint)
    cdef _send(self, Py_ssize_t i, item, bint final, bint failure)
    cdef _release_batch(self)


@cython.locals(delivery=BatchDelivery)
cpdef BatchDelivery new_delivery(list waiting, DeliveryContext context, OutstandingBatches outstanding)
