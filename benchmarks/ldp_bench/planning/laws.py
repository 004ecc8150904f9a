"""Laws of messages, by which channels that are the same are recognised."""

from __future__ import annotations

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.core.arrays import FloatArray

_NUM_USERS = 6
"""Number of users, spread over the rows of the table, for which the laws are compared."""

_MOST_COMPARED = 16
"""Largest number of labels for which the laws of channels are compared."""


def message_law(channel: Channel, table: FloatArray) -> bytes:
    """Rounded law of the messages for a few users and posteriors; empty if messages cannot be listed.

    Channels of one law tell the same about the labels. A message counts through its likelihood ratios
    ``q(z | .) / sum_y q(z | y)``, and messages of equal ratios are one. With many labels no two channels
    have one law, but at large eps, and the law is not worth its time: empty too.
    """
    if table.shape[-1] > _MOST_COMPARED:
        return b""
    law = b""
    rng = np.random.default_rng(0)  # the same posteriors for every channel
    rows = np.linspace(0, len(table) - 1, _NUM_USERS).astype(int)
    for row in rows:
        posterior = rng.dirichlet(np.ones(table.shape[1]))
        public = None
        if channel.adaptive:
            public = posterior
        try:
            listed = channel.list_messages(table[row], public)
        except TypeError:
            return b""
        log_density = channel.log_density(listed.messages, table[row], public)
        density = np.exp(log_density + listed.log_weights[:, None])
        density = density[density.any(axis=-1)]  # messages that no label sends
        total = density.sum(axis=-1)
        ratios, which = np.unique((density / total[:, None]).round(7), axis=0, return_inverse=True)
        weights = np.bincount(which.ravel(), total).round(7)
        law += np.column_stack([ratios, weights]).tobytes()
    return law
