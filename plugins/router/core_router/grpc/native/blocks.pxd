cpdef bytes field(bytes block, bytes name)
cpdef int status_of(bytes block)
