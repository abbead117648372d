"""The queue of waiting requests, and the batchers that take batches from it."""
