"""What the server tells about itself: statistics, metrics, log."""
