# distutils: language = c++
# cython: boundscheck=False, wraparound=False
"""ModelContract: inputs and outputs of a model for native code."""

cimport cython
from libcpp.memory cimport make_shared

from core.config.signature cimport Signature


@cython.final
cdef class ModelContract:
    """Inputs and outputs of a model, copied from its Signature for Cython code and for C++ code."""

    def __init__(self, Signature signature not None):
        cdef Contract* contract
        cdef OutputContract output
        self.native = make_shared[Contract]()
        contract = self.native.get()
        contract.model = signature.name.encode()
        contract.has_rows = signature.max_batch_size > 0
        contract.decoupled = signature.decoupled
        self.signature = signature
        self.model = signature.name
        self.decoupled = signature.decoupled
        self.inputs = list(signature.inputs)
        self.outputs = list(signature.outputs)
        self.dtypes = [each.dtype for each in signature.outputs.values()]
        for name, state in signature.states.items():
            if name not in signature.outputs:
                self.outputs.append(name)
                self.dtypes.append(state.dtype)
        for name, dtype in zip(self.outputs, self.dtypes):
            output.name = name.encode()
            output.dtype = dtype.number
            contract.outputs.push_back(output)
