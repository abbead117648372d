"""The exceptions of PyTriton."""

from __future__ import annotations


class PyTritonError(Exception):
    """Base of all."""

    def __init__(self, message: str):
        super().__init__(message)
        self.message = message


class PyTritonValidationError(PyTritonError):
    """Something has a wrong form, such as the result of a function."""


class PyTritonInvalidOperationError(PyTritonError):
    """The operation is not possible now."""


class PyTritonBadParameterError(PyTritonError):
    """An argument has a wrong value."""


class PyTritonModelConfigError(PyTritonError):
    """The configuration of a model is wrong."""


class PyTritonUnrecoverableError(PyTritonError):
    """A function raises it to end the server: it cannot serve any more."""


class PyTritonRuntimeError(PyTritonError):
    """A decorator cannot do its work."""
