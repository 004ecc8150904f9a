"""Public statistics of the messages: what learned agents see."""
