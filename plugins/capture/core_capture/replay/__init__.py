"""Sends recorded requests again, and compares the answers."""
