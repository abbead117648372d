"""What a search has found, for people and programs."""
