"""Inline conversions between Python objects and the C++ session: options, memory, buffers, metadata, time."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy
from libcpp.string cimport string

from core.native.clock cimport core_monotonic_ns
from frontends.grpc.native.session cimport NEVER, External, RequestHead, Settings, Times, Wire


cdef inline int64_t now_ns() noexcept nogil:
    """Return the current time in ns, like time.monotonic_ns()."""
    return core_monotonic_ns()


cdef inline int64_t from_ms(value):
    return <int64_t>value * 1000000


cdef inline set_bounds(Settings& settings, options, int64_t most_request_bytes):
    """Set limits and times from the options. `age_ns` becomes NEVER: EngineContext sets it per connection."""
    cdef Times* times = &settings.times
    settings.most_message_bytes = most_request_bytes
    settings.most_streams = options.grpc_max_concurrent_streams
    settings.message_timeout_ns = <int64_t>options.grpc_message_timeout_secs * 1000000000 or NEVER
    times.keepalive_ns = from_ms(options.grpc_keepalive_time)
    times.keepalive_timeout_ns = from_ms(options.grpc_keepalive_timeout)
    times.keepalive_without_calls = options.grpc_keepalive_permit_without_calls
    times.most_pings_without_data = options.grpc_http2_max_pings_without_data
    times.least_ping_interval_ns = from_ms(options.grpc_http2_min_recv_ping_interval_without_data)
    times.most_ping_strikes = options.grpc_http2_max_ping_strikes
    times.age_ns = NEVER
    times.age_grace_ns = from_ms(options.grpc_max_connection_age_grace) or NEVER


# Functions that a PythonHost calls with the Share of its connection.

cdef inline int take(void* share, size_t size, string* why) noexcept:
    try:
        (<object>share).take(size, "messages and answers")
    except Exception as error:
        why[0] = (<str>getattr(error, "message", "no memory")).encode()
        return False
    return True


cdef inline void give(void* share, size_t size) noexcept:
    (<object>share).give(size)


cdef inline void give_unpaid(void* share, size_t size) noexcept:
    (<object>share).give_unpaid(size)


cdef inline tuple metadata_of(const RequestHead* head):
    """Return the metadata of a request as pairs: (name, str), or (name, bytes) if the name ends in -bin."""
    cdef const char* at = head.metadata.data()
    cdef const char* end = at + head.metadata.size()
    cdef uint32_t sizes[2]
    pairs = []
    while at < end:
        memcpy(sizes, at, sizeof(sizes))
        at += sizeof(sizes)
        name = at[:sizes[0]].decode("ascii", "replace")
        value = at[sizes[0] : sizes[0] + sizes[1]]
        at += sizes[0] + sizes[1]
        if not name.endswith("-bin"):
            try:
                value = value.decode()
            except UnicodeDecodeError:
                value = value.decode("latin-1")
        pairs.append((name, value))
    return tuple(pairs)


cdef inline str peer_of(transport):
    """Return the address of the client, as in `ipv4:127.0.0.1:5000`, `ipv6:[::1]:5000` or `unix:`."""
    name = transport.get_extra_info("peername")
    if not isinstance(name, tuple):  # of a Unix domain socket, whose other end has no name
        return "unix:"
    return f"ipv6:[{name[0]}]:{name[1]}" if ":" in name[0] else f"ipv4:{name[0]}:{name[1]}"


cdef inline object flat(buffer):
    """Return `buffer` itself if it is bytes, else a flat memoryview of its bytes; b"" if it is empty."""
    if PyBytes_CheckExact(buffer):
        return buffer
    view = memoryview(buffer)
    if view.nbytes == 0:
        return b""
    return view if view.format == "B" and view.ndim == 1 and view.contiguous else view.cast("B")


cdef inline const char* first_byte(object part) except NULL:
    """Return the address of the first byte of a result of `flat`."""
    if PyBytes_CheckExact(part):
        return PyBytes_AS_STRING(part)
    return <const char*>PyMemoryView_GET_BUFFER(part).buf


cdef inline list wire_pieces(Wire* wire):
    """Return the bytes and external pieces of a Wire in order. External pieces are their owners, or views of
    them; the rest is copied.
    """
    cdef External* each
    cdef size_t position = 0, i, offset
    pieces = []
    for i in range(wire.externals.size()):
        each = &wire.externals[i]
        if each.at > position:
            pieces.append(
                PyBytes_FromStringAndSize(wire.bytes.data() + position, each.at - position)
            )
            position = each.at
        owner = <object>each.owner
        if len(owner) == <Py_ssize_t>each.size:
            pieces.append(owner)
        else:
            offset = each.data - first_byte(owner)
            pieces.append(memoryview(owner)[offset : offset + each.size])
    if wire.bytes.size() > position:
        pieces.append(
            PyBytes_FromStringAndSize(
                wire.bytes.data() + position, wire.bytes.size() - position
            )
        )
    return pieces
