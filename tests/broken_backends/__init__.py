"""Backends with one mistake each, checked with the contract kit by tests/unit/testing/test_kit.py.

Each class names the test of the kit that finds its mistake; the files are those of the tests. Where core
itself keeps the promise, an example is wrong, or core is broken.

contract.py   base classes of all of them
well.py       backends without a mistake
"""
