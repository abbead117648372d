"""From the arrays of an execution to the responses of its requests: cut, classified, placed, delivered."""
