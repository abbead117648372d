"""RepeatedResponse: fast writing of similar responses. Loop thread only; for compiled code only.

Responses of a model to similar requests differ only in id, shapes, sizes and numbers. Only these are
written, between kept texts.
"""

class RepeatedResponse:
    """A written response, kept to write responses whose outputs have the same names, datatypes and ranks."""
