"""What the frontends have in common, whatever protocol they speak."""
