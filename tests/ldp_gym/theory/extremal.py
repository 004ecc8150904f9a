"""Optimal private messages by linear programs over the extremal ones (Kairouz, Oh and Viswanath 2016)."""

import math
from functools import cache

import numpy as np
from scipy.optimize import linprog


def entropy(weights):
    """Entropy of a distribution, in nats."""
    return -sum(w * math.log(w) for w in weights if w > 0.0)


def extremal_messages(num_labels, epsilon):
    """Relative likelihoods ``(2^M - 2, M)``: e^eps on a set of labels, 1 elsewhere."""
    sets = (np.arange(1, 2**num_labels - 1)[:, None] >> np.arange(num_labels)) & 1
    return 1.0 + math.expm1(epsilon) * sets


def most_information(weights, epsilon):
    """The most that an eps-private message can tell about disjoint supports: a linear program."""
    raised = extremal_messages(len(weights), epsilon)
    gain = (raised * np.log(raised / (raised @ weights)[:, None])) @ weights
    return -linprog(-gain, A_eq=raised.T, b_eq=np.ones(len(weights))).fun


def least_risk(table, epsilon, horizon, *, symmetric=False):
    """The least risk of all strategies, by dynamic programming: a linear program at every posterior.

    Where the order of hypotheses does not matter (``symmetric``), sorted posteriors meet again.
    """
    raised, order = extremal_messages(table.shape[1], epsilon), np.sort if symmetric else np.asarray

    @cache
    def least(weights, rounds):
        now = entropy(weights @ table) - sum(
            w * entropy(row) for w, row in zip(weights, table, strict=True)
        )
        if rounds == 1:
            return now
        joint = raised @ table.T * weights
        chances = joint.sum(axis=1)
        after = [tuple(order(row).round(12).tolist()) for row in joint / chances[:, None]]
        costs = chances * [least(posterior, rounds - 1) for posterior in after]
        return now + linprog(costs, A_eq=raised.T, b_eq=np.ones(table.shape[1])).fun

    return least((1.0 / len(table),) * len(table), horizon)
