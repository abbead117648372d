# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Pixels looked up in tables."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t

ctypedef fused Bits:
    uint8_t
    uint16_t
    uint32_t

cdef Py_ssize_t LARGE = 1 << 16  # pixels from which other threads may run meanwhile


def look_up(const uint8_t[:, :, :] pixels, const Bits[:, ::1] tables, Bits[:, :, :] out):
    cdef Py_ssize_t height = pixels.shape[0], width = pixels.shape[1], channels = pixels.shape[2]
    if tables.shape[0] != channels or tables.shape[1] != 256:
        raise ValueError(f"{channels} channels need {channels} tables of 256 values")
    if out.shape[0] != channels or out.shape[1] != height or out.shape[2] != width:
        raise ValueError("pixels [height, width, channels] need a result [channels, height, width]")
    if height * width < LARGE:
        fill(pixels, tables, out)
    else:
        with nogil:
            fill(pixels, tables, out)


cdef void fill(const uint8_t[:, :, :] pixels, const Bits[:, ::1] tables, Bits[:, :, :] out) noexcept nogil:
    cdef Py_ssize_t x, y, channel, step = pixels.strides[1], width = pixels.shape[1]
    cdef const uint8_t* pixel
    cdef const Bits* table
    cdef Bits* row
    for y in range(pixels.shape[0]):
        for channel in range(pixels.shape[2]):
            pixel = &pixels[y, 0, channel]
            table = &tables[channel, 0]
            if out.strides[2] == <Py_ssize_t>sizeof(Bits):  # a plane, which the compiler unrolls
                row = &out[channel, y, 0]
                for x in range(width):
                    row[x] = table[pixel[x * step]]
            else:
                for x in range(width):
                    out[channel, y, x] = table[pixel[x * step]]
