"""What a person or a program reads at the end, and the line that shows progress."""
