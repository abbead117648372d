from core.native.timer cimport LoopTimer
from core.native.clock cimport Clock
from core.pipeline.instances.pool cimport Pool
from core.pipeline.endpoint cimport RequestHandler
from core.pipeline.batching.queue cimport QueuedRequest
from core.telemetry.statistics cimport Statistics


cdef class Scheduler(RequestHandler):
    cdef readonly Statistics _statistics
    cdef readonly object _loop
    cdef readonly Pool _pool
    cdef readonly object _on_final
    cdef readonly Clock _clock
    cdef LoopTimer _timer
    cdef bint _pumping

    cpdef pump(self)
    cpdef long long _start_batches(self) except? -1
    cpdef _fail_all(self, error)
    cpdef _refuse(self, QueuedRequest waiting, error, reason)
