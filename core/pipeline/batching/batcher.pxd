import cython

from core.pipeline.instances.pool cimport Pool
from core.pipeline.batching.group cimport GroupKey
from core.pipeline.batching.queue cimport RequestQueue, Waiting, made_waiting
from core.pipeline.batching.scheduler cimport Scheduler
from core.pipeline.instances.worker cimport Worker
from core.request cimport InferenceRequest
from core.response cimport Reply, made_reply


@cython.final
cdef class BatchLimits:
    cdef readonly Py_ssize_t most_rows
    cdef readonly tuple preferred
    cdef readonly long long delay_ns
    cdef readonly bint alone


@cython.locals(entry=Waiting, request=InferenceRequest, largest_preferred=cython.longlong, rows=cython.longlong,
               size=cython.longlong, best=cython.Py_ssize_t, fitting=cython.Py_ssize_t,
               oldest_ns=cython.longlong, complete=cython.bint, late=cython.bint, prefers=cython.bint)
cpdef tuple choose(list waiting, BatchLimits limits, long long now_ns, object fits=*)


cdef class Batcher(Scheduler):
    cdef RequestQueue _queue
    cdef BatchLimits _limits
    cdef GroupKey _key
    cdef object _rules
    cdef bint _pump_soon
    cdef object _estimate

    cdef _push(self, Waiting waiting)
    @cython.locals(waiting=Waiting)
    cdef _expire(self, long long now_ns)


cdef class SingleBatcher(Batcher):
    @cython.locals(reply=Reply, waiting=Waiting)
    cpdef Reply ask(self, InferenceRequest request)
    @cython.locals(worker=Worker)
    cdef bint _runs_at_once(self, Waiting waiting) except -1
    @cython.locals(queue=RequestQueue, chosen=list, worker=Worker)
    cpdef long long _start_batches(self) except? -1


cdef class GroupingBatcher(Batcher):
    @cython.locals(reply=Reply, waiting=Waiting)
    cpdef Reply ask(self, InferenceRequest request)
    @cython.locals(queue=RequestQueue, chosen=list, worker=Worker, now_ns=cython.longlong,
                   look_again_ns=cython.longlong, expiry_ns=cython.longlong)
    cpdef long long _start_batches(self) except? -1
    cdef _look_soon(self)


@cython.final
cdef class _Leaving:
    cdef Batcher _batcher
    cdef Waiting _waiting


@cython.locals(leaving=_Leaving)
cdef _Leaving _leaving(Batcher batcher, Waiting waiting)
