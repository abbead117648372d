"""Hostile requests over HTTP and gRPC, made from the structure of good ones: `python -m tests.fuzz.hostile`.

    grammar (mutate.py) ─► messages (http_messages.py, grpc_messages.py) ─► clients ─► a real server
                                                                                └─► Findings, a table

One seed makes the same requests in the same order. Between them go good ones, whose answers are
compared. A finding is a crash, an answer that blames the server, a wrong answer to a good request, a
request without an answer, or memory that is kept.
"""
