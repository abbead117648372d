from core.config.signature import Signature

class ModelContract:
    """Inputs and outputs of a model, for Cython code and for the C++ code that calls its backend.

    outputs   names of the outputs, then of states that are not outputs; `dtypes` are their datatypes
    """

    def __init__(self, signature: Signature) -> None: ...
