"""What is written in Cython: fast forms of what modules of this package have in Python as well."""
