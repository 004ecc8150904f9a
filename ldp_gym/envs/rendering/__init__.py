"""What a person watching sees. Frames show the hidden truth."""
