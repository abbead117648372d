"""Where batches are executed: the instances of a version, each with a worker, and the limits they share."""
