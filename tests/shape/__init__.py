"""Numbers about the code with limits: `make shape` prints them, test_shape.py checks them.

sources.py    the files that count, and what is defined in them
imports.py    the imports between modules, with those for type checkers
measures.py   the numbers and their bounds
"""
