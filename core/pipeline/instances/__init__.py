"""Instances of a model version: their specifications, their runners, the pool and the rate limiter."""
