"""Rounds, their statistics, and what the server used meanwhile."""
