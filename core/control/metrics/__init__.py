"""Metrics of models, machine and process, collected for each scrape."""
