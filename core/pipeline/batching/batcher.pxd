import cython

from core.pipeline.instances.pool cimport Pool
from core.pipeline.batching.group cimport GroupKey
from core.pipeline.batching.queue cimport RequestQueue, QueuedRequest, new_queued_request
from core.pipeline.batching.scheduler cimport Scheduler
from core.pipeline.instances.runner cimport InstanceRunner
from core.request cimport InferenceRequest
from core.response cimport Reply, new_reply


@cython.final
cdef class BatchLimits:
    cdef readonly Py_ssize_t most_rows
    cdef readonly tuple preferred
    cdef readonly long long delay_ns
    cdef readonly bint alone


@cython.locals(entry=QueuedRequest, request=InferenceRequest, largest_preferred=cython.longlong, rows=cython.longlong,
               size=cython.longlong, best=cython.Py_ssize_t, fitting=cython.Py_ssize_t,
               oldest_ns=cython.longlong, complete=cython.bint, late=cython.bint, prefers=cython.bint)
cpdef tuple choose(list waiting, BatchLimits limits, long long now_ns, object fits=*)


cdef class Batcher(Scheduler):
    cdef RequestQueue _queue
    cdef BatchLimits _limits
    cdef GroupKey _key
    cdef object _rules
    cdef bint _pump_scheduled
    cdef object _estimate

    cdef _push(self, QueuedRequest waiting)
    @cython.locals(waiting=QueuedRequest)
    cdef _expire(self, long long now_ns)


cdef class SingleBatcher(Batcher):
    @cython.locals(reply=Reply, waiting=QueuedRequest)
    cpdef Reply submit(self, InferenceRequest request)
    @cython.locals(runner=InstanceRunner)
    cdef bint _runs_at_once(self, QueuedRequest waiting) except -1
    @cython.locals(queue=RequestQueue, chosen=list, runner=InstanceRunner)
    cpdef long long _start_batches(self) except? -1


cdef class GroupingBatcher(Batcher):
    @cython.locals(reply=Reply, waiting=QueuedRequest)
    cpdef Reply submit(self, InferenceRequest request)
    @cython.locals(queue=RequestQueue, chosen=list, runner=InstanceRunner, now_ns=cython.longlong,
                   next_time_ns=cython.longlong, expiry_ns=cython.longlong)
    cpdef long long _start_batches(self) except? -1
    cdef _pump_later(self)


@cython.final
cdef class _Remover:
    cdef Batcher _batcher
    cdef QueuedRequest _waiting


@cython.locals(remover=_Remover)
cdef _Remover _new_remover(Batcher batcher, QueuedRequest waiting)
