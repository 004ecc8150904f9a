"""A private survey from end to end: plan it without labels, answer it privately, read it, and stop.

Three models say how often each of four answers occurs. The survey is to tell which of them is right.

1. ``ldp_bench.plan`` simulates surveys under each model: how many users, on which channel?
2. Each client checks the plan against the eps that its user allows, and sends one message, drawn with exact
   integer probabilities and the operating system's coins.
3. The server reads the messages, and stops when one model is left. Its whole state is the plan and the list
   of messages.

A deployment needs more than this file: see docs/plan.md.

    python examples/survey.py
"""

from __future__ import annotations

import numpy as np

import ldp_bench
from ldp_gym.privacy import ExactChannel

LABELS = ["coffee", "tea", "juice", "water"]
MODELS = {
    "mornings": [0.6, 0.2, 0.1, 0.1],
    "evenings": [0.1, 0.6, 0.2, 0.1],
    "any time": [0.25, 0.25, 0.25, 0.25],
}
TRUTH = "mornings"  # what the users really do; nobody in the survey knows it


def answer(text: str, label: str, posterior: np.ndarray | None) -> np.ndarray:
    """One user's device: it gets the plan as JSON, and sends one message about its label."""
    plan = ldp_bench.Plan.from_json(text, most=1.0)
    channel = ExactChannel(plan, most=1.0)  # an eps above 1 is refused
    candidates = plan.candidates()[0]
    message, _ = channel.answer(plan.label(label), candidates, posterior)
    return message


def main() -> None:
    planned = ldp_bench.plan(MODELS, labels=LABELS, epsilon=1.0, quiet=True)
    print(planned)
    text = planned.plan.to_json()

    survey = ldp_bench.Survey(ldp_bench.Plan.from_json(text))
    messages = []
    rng = np.random.default_rng(0)
    while not survey.finished and survey.asked < survey.plan.most_users:
        label = rng.choice(LABELS, p=MODELS[TRUTH])
        message = answer(text, str(label), survey.posterior)
        survey.read([message])
        messages.append(message)
    print(f"\nAfter {survey.asked} users. {survey.verdict}")

    try:
        answer(text, "lemonade", survey.posterior)
    except ValueError as error:
        print(f"refused: {error}")

    again = ldp_bench.Survey(survey.plan)  # a restart: the messages are the whole state
    again.read(messages)
    assert again.left == survey.left


if __name__ == "__main__":
    main()
