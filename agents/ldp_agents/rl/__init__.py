"""Learned baselines."""
