"""The servers behind the router: where they are, which models they have, and how they do."""
