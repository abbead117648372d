# distutils: language = c++
# cython: boundscheck=False, wraparound=False
"""Creates executors of native instances, and implements the functions that backends call.

Each function takes the GIL, and raises nothing: it logs exceptions or returns an error status.
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp.string cimport string

from core.abi cimport (
    CORE_ABI_VERSION, CORE_BOOLEAN, CORE_COUNTER, CORE_GAUGE, CORE_HISTOGRAM, CORE_INSTANCE_CAPSULE, CORE_INTEGER, CORE_INTERNAL, CORE_INVALID,
    CORE_LOG_ERROR, CORE_LOG_INFO, CORE_LOG_VERBOSE, CORE_LOG_WARNING, CORE_NOT_GATHERED, CORE_NUMBER, CORE_OK,
    CORE_TEXT, core_answer, core_batch, core_details, core_instance, core_metric, core_parameter,
)
from core.native.executor cimport Answer, NativeExecutor, Details, Execution, NativeCall, table
from core.request cimport InferenceRequest, RequestedOutput

import logging

from core.errors import internal

ABI_VERSION = CORE_ABI_VERSION
_logger = logging.getLogger("core")

cdef enum:
    ALL_FLAGS = CORE_NOT_GATHERED

cdef dict _LEVELS = {
    CORE_LOG_VERBOSE: logging.DEBUG,
    CORE_LOG_INFO: logging.INFO,
    CORE_LOG_WARNING: logging.WARNING,
    CORE_LOG_ERROR: logging.ERROR,
}
cdef dict _METRICS = {CORE_COUNTER: "counter", CORE_GAUGE: "gauge", CORE_HISTOGRAM: "histogram"}


def new_executor(instance):
    """Return a NativeExecutor of `instance`. Raise CoreError(INTERNAL) if its capsule cannot be used."""
    cdef core_instance* native
    capsule = instance.native
    name = type(instance).__module__
    if not PyCapsule_IsValid(capsule, CORE_INSTANCE_CAPSULE):
        raise internal(
            f"{name} gave {type(capsule).__name__} as `native` of an instance, expected a capsule "
            f"named '{CORE_INSTANCE_CAPSULE.decode()}'"
        )
    native = <core_instance*>PyCapsule_GetPointer(capsule, CORE_INSTANCE_CAPSULE)
    _check(native, name)
    if _has_attach(native):
        native.attach(native.self, table())
    return NativeExecutor(capsule)


cdef int _check(core_instance* native, str name) except -1:
    """Raise CoreError(INTERNAL) if an instance is of another ABI, has unknown flags or is incomplete."""
    if native.abi_version != CORE_ABI_VERSION:
        newer = native.abi_version > CORE_ABI_VERSION
        raise internal(
            f"{name} was built for core ABI {native.abi_version}, this core has {CORE_ABI_VERSION}: "
            f"{'upgrade core' if newer else 'reinstall the backend'}"
        )
    least = <char*>(&native.execute + 1) - <char*>native
    if native.struct_size < least:
        raise internal(
            f"{name} gave a core_instance of {native.struct_size} bytes, core ABI {CORE_ABI_VERSION} has at "
            f"least {least}: set struct_size to sizeof(core_instance)"
        )
    if native.flags & ~<uint64_t>ALL_FLAGS:
        raise internal(f"{name} asks for flags {native.flags:#x}, this core has {ALL_FLAGS:#x}: upgrade core")
    if native.execute == NULL:
        raise internal(f"{name} gave a core_instance without `execute`")
    return 0


cdef bint _has_attach(core_instance* native) noexcept:
    return <char*>(&native.attach + 1) - <char*>native <= <ptrdiff_t>native.struct_size and native.attach != NULL


@cython.final
cdef class DeferredResponse:
    """Sends responses to one request, during or after execute (`later` in core_abi.h). Needs the GIL.

    The batch and its inputs stay in memory until the backend, which holds a reference, calls `release`.
    """

    cdef NativeCall call
    cdef Answer* answer
    cdef int32_t request

    def __dealloc__(self):
        del self.answer

    cdef int send(self, bint final) except -1:
        cdef bint empty = not self.answer.touched
        self.answer.ended = final
        if empty and final:
            self._end()
        elif not empty:
            self.call.respond(self.answer, self.request, final)
        return 0

    cdef _end(self):
        """End the request without another response; a model that is not decoupled gives an error."""
        if self.call.contract.decoupled:
            self.call.batch.finish(self.request)
        else:
            self.call.batch.fail(self.request, internal(
                f"model '{self.call.contract.model}' ended without an answer to request "
                f"{self.request} of a batch of {len(self.call.batch)}"
            ), failure=True)

    cdef int release(self) except -1:
        cdef NativeCall call = self.call
        if not self.answer.ended:
            self.answer.ended = True
            self._end()
        call.senders -= 1
        if not call.senders and not call.executing:
            call.clear()
        return 0


cdef core_answer* _later(core_batch* batch, int32_t request) noexcept with gil:
    cdef Execution* execution = <Execution*>batch
    cdef NativeCall call
    cdef DeferredResponse sender
    cdef InferenceRequest asked
    cdef Answer* answer
    if batch == NULL:
        return NULL
    try:
        call = <NativeCall>execution.owner
        answer = execution.later(request)
        if answer == NULL:
            return NULL
        sender = DeferredResponse.__new__(DeferredResponse)
        sender.answer = answer
        sender.call = call
        sender.request = request
        call.batch.defer(request)
        asked = call.batch.requests[request]
        while asked is not None:  # a step of an ensemble also waits for the client of the ensemble
            answer.held.push_back(<const int*>&asked.paused)
            asked = asked.parent
        answer.owner = <void*>sender
        call.senders += 1
        Py_INCREF(sender)
        return <core_answer*>answer
    except BaseException:
        _logger.exception("a native backend cannot answer request %d later", request)
        return NULL


cdef int32_t _send(core_answer* given, int32_t final) noexcept with gil:
    cdef Answer* answer = <Answer*>given
    if answer == NULL or answer.owner == NULL or answer.ended:
        return CORE_INVALID
    try:
        (<DeferredResponse>answer.owner).send(final != 0)
        return CORE_OK
    except BaseException:
        _logger.exception("an answer of a native backend was not sent")
        return CORE_INTERNAL


cdef void _release(core_answer* given) noexcept with gil:
    cdef Answer* answer = <Answer*>given
    if answer == NULL or answer.owner == NULL:
        return
    sender = <DeferredResponse>answer.owner
    try:
        (<DeferredResponse>sender).release()
    except BaseException:
        _logger.exception("an answer of a native backend was not ended")
    Py_DECREF(sender)


cdef const core_details* _details(core_batch* batch, int32_t request) noexcept with gil:
    cdef Execution* execution = <Execution*>batch
    cdef NativeCall call
    if batch == NULL:
        return NULL
    try:
        call = <NativeCall>execution.owner
        if request < 0 or request >= len(call.batch.requests):
            return NULL
        if call.details is None:
            call.details = {}
        found = call.details.get(request)
        if found is None:
            found = call.details[request] = _details_of(call.batch.requests[request])
        return (<DetailsOwner>found).finished
    except BaseException:
        _logger.exception("a native backend cannot see request %d", request)
        return NULL


@cython.final
cdef class DetailsOwner:
    """Owns the memory of the core_details of one request."""

    cdef Details* details
    cdef const core_details* finished

    def __dealloc__(self):
        del self.details


cdef DetailsOwner _details_of(InferenceRequest request):
    cdef DetailsOwner made = DetailsOwner.__new__(DetailsOwner)
    cdef RequestedOutput output
    made.details = new Details()
    made.details.id_ = request.id.encode()
    made.details.priority = request.priority
    made.details.timeout_us = request.timeout_us
    if isinstance(request.correlation_id, str):
        made.details.correlation_ = request.correlation_id.encode()
    else:
        made.details.correlation_id = request.correlation_id
    if request.has_parameters:
        for name, value in request.parameters.items():
            _add(made.details, name.encode(), value)
    for output in request.outputs:
        made.details.outputs_.push_back(output.name.encode())
    made.finished = made.details.finish()
    return made


cdef int _add(Details* details, bytes name, value) except -1:
    if isinstance(value, bool):
        details.add(name, CORE_BOOLEAN, b"", 1 if value else 0, 0.0)
    elif isinstance(value, int) and -(2**63) <= value < 2**63:
        details.add(name, CORE_INTEGER, b"", value, 0.0)
    elif isinstance(value, (int, float)):
        details.add(name, CORE_NUMBER, b"", 0, value)
    else:
        details.add(name, CORE_TEXT, str(value).encode(), 0, 0.0)
    return 0


cdef void _log(int32_t level, const char* text) noexcept with gil:
    try:
        if text != NULL:
            _logger.log(_LEVELS.get(level, logging.INFO), "%s", text.decode("utf-8", "replace"))
    except BaseException:
        _logger.exception("a line of a native backend was not logged")


@cython.final
cdef class BackendMetric:
    """A metric that a native backend has created; the backend holds one reference to it."""

    cdef object family
    cdef object metric


cdef core_metric* _metric(
    int32_t kind, const char* name, const char* help, const core_parameter* labels, int32_t label_count,
    const double* buckets, int32_t bucket_count,
) noexcept with gil:
    cdef BackendMetric made
    cdef int32_t i
    try:
        from core.telemetry.registry import registry  # imported late: native backends are rare

        if name == NULL or kind not in _METRICS:
            raise internal(f"a metric of a native backend has kind {kind}, or no name")
        made = BackendMetric.__new__(BackendMetric)
        text = (help.decode() if help != NULL else "")
        made.family = registry.family(name.decode(), text, _METRICS[kind])
        try:
            made.metric = made.family.metric(
                {labels[i].name.decode(): labels[i].text.decode() for i in range(label_count)},
                [buckets[i] for i in range(bucket_count)],
            )
        except BaseException:
            registry.remove(made.family)
            raise
        Py_INCREF(made)
        return <core_metric*><void*>made
    except BaseException:
        _logger.exception("a native backend's metric was refused")
        return NULL


cdef int32_t _metric_add(core_metric* metric, double value) noexcept with gil:
    if metric == NULL:
        return CORE_INVALID
    try:
        changed = (<BackendMetric><void*>metric).metric
        if changed.kind == "histogram":
            changed.observe(value)
        else:
            changed.increment(value)
        return CORE_OK
    except BaseException:
        return CORE_INVALID


cdef int32_t _metric_set(core_metric* metric, double value) noexcept with gil:
    if metric == NULL:
        return CORE_INVALID
    try:
        (<BackendMetric><void*>metric).metric.set(value)
        return CORE_OK
    except BaseException:
        return CORE_INVALID


cdef void _metric_release(core_metric* metric) noexcept with gil:
    if metric == NULL:
        return
    made = <BackendMetric><void*>metric
    try:
        from core.telemetry.registry import registry  # see _metric

        (<BackendMetric>made).family.remove((<BackendMetric>made).metric)
        registry.remove((<BackendMetric>made).family)
    except BaseException:
        _logger.exception("a native backend's metric was not removed")
    Py_DECREF(made)


table().later = _later
table().send = _send
table().release = _release
table().details = _details
table().log = _log
table().metric = _metric
table().metric_add = _metric_add
table().metric_set = _metric_set
table().metric_release = _metric_release
