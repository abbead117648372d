"""The soak: a real server, some 500 requests a second, and everything that may happen to a server meanwhile.

    plan ─► disturbances ─┐
    traffic ─► clients ─► server ─► answers ─► ledger ─► table
    upkeep ───────────────┘

`make soak` takes ten minutes; tests/process/test_soak.py is the same, shorter. plan.py says what happens
and when. Every request carries content of its own, and its answer is checked by content.
"""
