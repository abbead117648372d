"""The search: what is measured next, and what is known after it."""
