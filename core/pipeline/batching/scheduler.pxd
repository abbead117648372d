from core.native.alarm cimport Alarm
from core.native.clock cimport Clock
from core.pipeline.instances.pool cimport Pool
from core.pipeline.intake cimport Stage
from core.pipeline.batching.queue cimport Waiting
from core.telemetry.statistics cimport Statistics


cdef class Scheduler(Stage):
    cdef readonly Statistics _statistics
    cdef readonly object _loop
    cdef readonly Pool _pool
    cdef readonly object _on_final
    cdef readonly Clock _clock
    cdef Alarm _alarm
    cdef bint _pumping

    cpdef pump(self)
    cpdef long long _start_batches(self) except? -1
    cpdef _fail_all(self, error)
    cpdef _refuse(self, Waiting waiting, error, reason)
