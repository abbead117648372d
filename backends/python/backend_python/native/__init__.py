"""Cython code: fast forms of functions that this package also has in Python."""
