"""The process of one model instance, or of several, and the template that it is forked from.

messages ─► connection, which receives and is an Outgoing ─► main ─► runner.
"""
