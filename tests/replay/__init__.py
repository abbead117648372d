"""The proof of capture and replay: the traffic of the conformance suite, recorded and sent again.

recorded.py   runs the suite with captures; each server leaves its models, its options and its traffic
replayed.py   starts each server again, replays its traffic, and compares bytes
expected.py   requests whose answers cannot be the same, and why
judged.py     what a replay must show, so that an empty one does not pass
"""
