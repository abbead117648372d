"""Backends with one mistake each, held against the contract kit by plugins/testing/tests/test_kit.py.

Each class says by which test of the kit its mistake is found; they lie in files as those tests do. Where core
itself keeps the promise, an example says something that is not so, or core is broken.

contract.py   what all of them are made of
well.py       backends without a mistake
"""
