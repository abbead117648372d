"""Running jobs: which process owns which job, and how its requests get their results."""
