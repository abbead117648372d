"""What is compiled: forests as they lie in memory, rows through them, Shapley values."""
