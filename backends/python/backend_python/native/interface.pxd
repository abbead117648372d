cpdef int plain_number(object array) noexcept
