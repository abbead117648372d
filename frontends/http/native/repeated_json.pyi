"""Requests and answers with all their numbers in the JSON, which repeat those before them.

Loop thread only; of use to compiled code alone.
"""
