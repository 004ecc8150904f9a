"""Every public callable of ldp_gym and ldp_agents, with arguments that are right."""

from __future__ import annotations

from attack.call import Call
from attack.play_calls import play_calls
from attack.project_calls import project_calls


def all_calls() -> list[Call]:
    """Every call, with what is right and wrong for each of its arguments."""
    return [*play_calls(), *project_calls()]
