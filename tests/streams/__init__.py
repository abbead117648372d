"""Long trials of generative models: a soak of streams, and what a real engine must keep to."""
