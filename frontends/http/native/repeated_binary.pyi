"""Requests and answers with all their tensors in binary, which repeat those before them.

Loop thread only; of use to compiled code alone.
"""
