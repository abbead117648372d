"""What records the calls of a server."""
