import cython


@cython.final
cdef class Route:
    cdef readonly object target
    cdef readonly object purpose
    cdef readonly tuple candidates
    cdef readonly object split
    cdef readonly bint is_known
    cdef readonly bint is_stateful
    cdef readonly bint is_decoupled
    cdef readonly bint is_inference
    cdef readonly bint is_plain


@cython.final
cdef class ServerTable:
    cdef readonly dict servers
    cdef public object shares
    cdef dict _routes

    cpdef changed(self)
    @cython.locals(route=Route)
    cpdef Route find(self, bytes method, bytes target)
    @cython.locals(route=Route, key=tuple)
    cpdef Route for_model(self, purpose, str model, str version)
