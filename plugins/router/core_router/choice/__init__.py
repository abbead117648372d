"""Which server gets a request: the least cost of two, sequences where they began, few retries."""
