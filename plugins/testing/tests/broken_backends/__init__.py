"""Backends with one mistake each. test_kit.py checks that the contract kit finds each mistake.

`caught_by` names the tests of the kit that must fail for a class. The files are named like those of the kit.
If core itself guarantees a part of the contract, the example is wrong or the test breaks core.

contract.py   the bases of the broken backends
well.py       backends without a mistake
"""
