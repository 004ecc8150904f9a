"""What is promised about privacy, and how it is checked."""
