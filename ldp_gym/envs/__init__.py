"""Gymnasium environments of the game: single, vector, and what they draw on a screen."""
