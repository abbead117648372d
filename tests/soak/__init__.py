"""The soak: a real server, some 500 requests per second, and all events that a server must survive.

    plan ─► disturbances ─┐
    traffic ─► clients ─► server ─► answers ─► ledger ─► table
    upkeep ───────────────┘

`make soak` takes ten minutes; tests/process/test_soak.py is a shorter version. plan.py has the events and
their times. Every request has different content, and its response is checked by content.
"""
