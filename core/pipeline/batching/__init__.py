"""Where requests wait, and how they become batches: a queue with levels, a scheduler that empties it."""
