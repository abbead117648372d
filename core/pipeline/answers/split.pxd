import cython

from core.batch cimport Batch
from core.config.signature cimport OutputSpec, Signature
from core.dtypes cimport DataType
from core.request cimport InferenceRequest, RequestedOutput
from core.native.arrays cimport has_dtype, shape_of
from core.tensor cimport Tensor, new_tensor


@cython.locals(whole=Tensor, tensors=list, requests=list, request=InferenceRequest, row=cython.Py_ssize_t,
               end=cython.Py_ssize_t, i=cython.Py_ssize_t)
cpdef list split(outputs, Batch batch)
@cython.locals(signature=Signature, whole=Tensor, found=list)
cpdef list whole_tensors(outputs, Batch batch)
@cython.locals(tensor=Tensor, wanted=RequestedOutput, spec=OutputSpec)
cpdef list wanted_tensors(list tensors, InferenceRequest request, Signature signature)
@cython.locals(dtype=DataType, spec=OutputSpec)
cdef Tensor _whole(str name, value, Signature signature)
@cython.locals(output=RequestedOutput)
cdef RequestedOutput _wanted(InferenceRequest request, str name)
@cython.locals(spec=OutputSpec)
cdef OutputSpec _spec(Signature signature, name)
@cython.locals(tensors=list, each=Tensor)
cpdef list without_states(list tensors, Signature signature)
@cython.locals(tensor=Tensor, spec=OutputSpec)
cdef bint _plain(list tensors, Signature signature) except -1
@cython.locals(tensor=Tensor, spec=OutputSpec, shape=tuple, dims=tuple, first=cython.int, rows=cython.longlong,
               size=cython.longlong, dim=cython.longlong, i=cython.Py_ssize_t, place=cython.Py_ssize_t)
cpdef bint tensors_fit(list tensors, InferenceRequest request, Signature signature, tuple specs=*) except -1
@cython.locals(tensor=Tensor)
cpdef bint plain(list tensors) except -1
