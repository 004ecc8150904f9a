"""Frames for a person who watches; they show the hidden truth."""
