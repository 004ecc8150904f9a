"""Seeds from a secret: committed to before a run, revealed with its results.

Seeds are public, so that anyone can replay a run, and a learner could have drawn its tapes before. With a
secret the run's seed is a hash of it. Another hash, the commitment, is written down when the run begins and
says nothing about the seed. The results are kept in memory until the last cell is played; then they are
stored, with the secret. Anyone who has the commitment can check that the secret was chosen before, and replay
the run by its seed.
"""

from __future__ import annotations

import hashlib
import secrets


def new_secret() -> str:
    """A new secret, of 256 random bits."""
    return secrets.token_hex(32)


def commitment_to(secret: str) -> str:
    """What is published before the run.

    Example:
        >>> commitment_to("rosebud")[:16]
        '242a5bba2ff741ff'
    """
    return hashlib.sha256(b"ldp-gym commitment " + secret.encode()).hexdigest()


def seed_from(secret: str) -> int:
    """The seed of the first episode: 60 bits, which no learner tries out.

    Example:
        >>> seed_from("rosebud") == seed_from("rosebud"), seed_from("rosebud") < 2**60
        (True, True)
    """
    return int(hashlib.sha256(b"ldp-gym seed " + secret.encode()).hexdigest()[:15], 16)
