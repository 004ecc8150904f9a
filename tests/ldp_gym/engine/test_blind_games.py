"""Warnings about games in which the channel never tells two hypotheses apart."""

import warnings

import numpy as np
import pytest
from helpers import HARD

import ldp_gym
from ldp_gym.engine.blindness import warn_of_blind_pairs
from ldp_gym.engine.rules import Rules


@pytest.mark.parametrize("channel", ["split", "vote", "wheel"])
def test_a_blind_channel_is_named_with_the_pair_its_cost_and_a_remedy(channel):
    rules = {"hypotheses": HARD, "channel": channel, "horizon": 30}
    cost = 0.2 * np.log(2.0)  # KL from one of the two to their middle
    said = rf"never tells hypotheses 0 and 1 apart: .* {cost:.3g} nats .* {30 * cost:.4g} .*'half-space'"
    with pytest.warns(ldp_gym.BlindChannelWarning, match=said) as caught:
        played = ldp_gym.evaluate("bayes", rules, episodes=2, truth=0)
    assert [warning.filename for warning in caught] == [__file__]
    assert played.risk > 0.9 * 30 * cost  # so it is


@pytest.mark.parametrize("shift", [0, 1])
def test_one_context_that_tells_a_pair_apart_is_enough(shift):
    """Two tables, by the sign of the context: the same one twice, or one that hides another pair."""
    tables = np.stack([HARD, np.roll(HARD, shift, axis=0)])
    models = [lambda x, k=k: tables[(x[..., 0] > 0.0).astype(int), k] for k in range(8)]
    scenario = Rules(hypotheses=models, context_dim=1, channel="split", horizon=30).scenario()
    if shift == 0:
        with pytest.warns(ldp_gym.BlindChannelWarning, match="0 and 1"):
            warn_of_blind_pairs(scenario)
    else:
        warn_of_blind_pairs(scenario)


def test_other_games_have_no_warning():
    """Channels that tell all pairs apart; games that are not looked at; and those that were."""
    redrawn = {"hypotheses": "dirichlet", "redraw_hypotheses": True, "observe_candidates": True}
    redrawn["channel"] = "split"
    many = np.concatenate([HARD, np.full((57, 3), 1 / 3)])
    seen = Rules(hypotheses=HARD, channel="vote", horizon=30).scenario()
    with pytest.warns(ldp_gym.BlindChannelWarning):
        warn_of_blind_pairs(seen)
    games = [
        Rules(**redrawn, num_hypotheses=3).scenario(),
        Rules(hypotheses=many, channel="split").scenario(),
    ]
    games += [Rules(hypotheses=HARD, channel="split", horizon=5).scenario(), seen]
    others = ("half-space", "challenge", "randomized-response", "scheffe")
    games += [Rules(hypotheses=HARD, channel=name, horizon=30).scenario() for name in others]
    with warnings.catch_warnings(record=True) as caught:
        for game in games:
            warn_of_blind_pairs(game)
    assert not caught
