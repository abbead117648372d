import cython

from core.batch cimport Batch
from core.config.signature cimport Signature
from core.native.clock cimport Clock
from core.native.distribution cimport Histogram
from core.pipeline.batching.queue cimport QueuedRequest
from core.pipeline.endpoint cimport InFlightRequests
from core.request cimport InferenceRequest
from core.telemetry.statistics cimport Statistics


@cython.final
cdef class DeliveryContext:
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
    cdef public object loop, call_on_loop
    cdef public InFlightRequests in_flight
    cdef public object put_back
    cdef public object batch_done
    cdef public Clock clock

    @cython.locals(request=InferenceRequest, now=cython.longlong, total=cython.longlong,
                   start=cython.longlong, end=cython.longlong, compute_start=cython.longlong,
                   compute_end=cython.longlong)
    cdef count(self, QueuedRequest queued, Batch batch, bint failure)
    @cython.locals(times=Histogram, waited_ns=cython.longlong)
    cdef count_first(self, QueuedRequest queued, item)
    cdef trace(self, InferenceRequest request, Batch batch, item, bint final, str instance)


@cython.final
cdef class OutstandingBatches:
    cdef public str name
    cdef public Py_ssize_t count
    cdef public object on_empty

    cdef finished(self)
