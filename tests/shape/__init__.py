"""The shape of the code as numbers with bounds: `make shape` prints them, test_shape.py holds them.

sources.py    the files that count, and what is defined in them
imports.py    which module imports which, with imports for type checkers
measures.py   the numbers and their bounds
"""
