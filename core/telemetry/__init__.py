"""Telemetry of the server: statistics, metrics, log, traces."""
