"""The engine: rules become a scenario, a scenario a tape, and a referee computes the losses."""
