"""The process of one or several model instances, and the template process from which it is forked.

messages ─► connection, which receives and is an Outgoing ─► main ─► runner.
"""
