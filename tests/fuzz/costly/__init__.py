"""A search for the requests that cost a server most for a byte that their sender sends.

recipe ─► bytes ─► server ─► [measure] ─► search ─► recipe.  It looks for memory and for the time that others
wait, not for crashes: a small request that makes the server build a gigabyte is as good an attack as one that
ends it. `python -m tests.fuzz.costly` runs it.
"""
