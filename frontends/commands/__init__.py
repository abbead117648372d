"""Commands of `python -m core` that read one model without a server."""
