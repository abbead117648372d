"""What operators see of the router, and how they take servers out."""
