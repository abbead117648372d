# distutils: language = c++
# cython: freethreading_compatible=True
"""Members: member functions of OpenVINO GenAI. members.pyi documents it.

pybind11's Python objects give out their C++ object by `_pybind11_conduit_v1_`, its interface between extension
modules: it takes the name of the binary interface, the std::type_info of the class, and returns a capsule.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New


cdef extern from "members.hpp" namespace "members" nogil:
    const void* pipeline_type()
    const void* structure_type()
    const void* tokenizer_type()
    const char* type_info_name()
    const char* name_of(const void* type)
    void* exported(const char* library, const char* name) except +
    void call_0 "members::call"(void* function, void* object) except +
    void call_1 "members::call"(void* function, const void* object, void* argument) except +


# Of GCC and Clang on Linux, with libstdc++ and its strings since C++11.
cdef bytes INTERFACE = b"system_libstdcpp_gxx_abi_1xxx_use_cxx11_abi_1"


cdef void* address(object value, const void* type) except NULL:
    """Return the C++ object of a Python object, which owns it. Raises TypeError if it is of another class."""
    conduit = getattr(value, "_pybind11_conduit_v1_", None)
    known = PyCapsule_New(<void*> type, type_info_name(), NULL)
    found = None if conduit is None else conduit(INTERFACE, known, b"raw_pointer_ephemeral")
    if found is None:
        raise TypeError(f"{value.__class__.__name__} has no C++ object of the class {name_of(type).decode()}")
    return PyCapsule_GetPointer(found, name_of(type))


cdef class Members:
    cdef void* _step
    cdef void* _check

    def __init__(self, str library):
        path = library.encode()
        self._step = exported(path, b"_ZN2ov5genai26ContinuousBatchingPipeline4stepEv")
        self._check = exported(
            path, b"_ZNK2ov5genai22StructuredOutputConfig8validateERNS0_9TokenizerE"
        )

    def step(self, pipeline):
        cdef void* found = address(pipeline, pipeline_type())
        with nogil:
            call_0(self._step, found)

    def check_structure(self, structure, tokenizer):
        cdef void* found = address(structure, structure_type())
        cdef void* argument = address(tokenizer, tokenizer_type())
        with nogil:
            call_1(self._check, found, argument)
