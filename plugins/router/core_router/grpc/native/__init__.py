"""The compiled part: HTTP/2, and what a router reads of a message."""
