"""Parses large JSON of fast-path requests on another thread; for compiled code only."""
