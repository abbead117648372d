"""The proof of traffic by version: a rollout, a rollback and copies under a steady load.

models.py    versions of one model: an equal one, one with a planted difference, one that fails
load.py      an open-loop load over HTTP
run.py       the phases
judge.py     what they must show
"""
