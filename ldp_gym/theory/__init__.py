"""Bounds of the paper and ours with explicit constants, risk floors, and what one message tells. In nats."""

from ldp_gym.channels.accounting import offset, single_noise_scale, vector_noise_scale
from ldp_gym.channels.two_level import best_share, capacity
from ldp_gym.hypotheses.families import hadamard_gap, hadamard_horizon, star_amplitude
from ldp_gym.theory.bounds import (
    exp3_bound,
    lower_bound,
    nonprivate_bound,
    sample_complexity,
    tv_bound,
    wma_bound,
)
from ldp_gym.theory.contraction import ClassFloor, class_floor
from ldp_gym.theory.floor import information_limit, risk_floor
from ldp_gym.theory.information import InformationRate, MessageInformation, information_rate
from ldp_gym.theory.lower_bounds import (
    interactive_kl_lower_bound,
    interactive_tv_lower_bound,
    noninteractive_kl_lower_bound,
    noninteractive_tv_lower_bound,
)
from ldp_gym.theory.pairwise import blind_pairs, pair_floor
from ldp_gym.theory.rates import (
    challenge_kl_bound,
    challenge_tv_bound,
    half_space_kl_bound,
    half_space_sample_size,
    half_space_tv_bound,
    half_space_worst_kl_bound,
    interactive_kl_bound,
    interactive_minimax_kl_bound,
    interactive_sample_size,
    interactive_tv_bound,
    rank,
)
from ldp_gym.theory.regret import (
    exp3_regret_bound,
    fixed_share_bound,
    soft_bayes_bound,
    wma_regret_bound,
)

__all__ = [
    "ClassFloor",
    "InformationRate",
    "MessageInformation",
    "best_share",
    "blind_pairs",
    "capacity",
    "challenge_kl_bound",
    "challenge_tv_bound",
    "class_floor",
    "exp3_bound",
    "exp3_regret_bound",
    "fixed_share_bound",
    "hadamard_gap",
    "hadamard_horizon",
    "half_space_kl_bound",
    "half_space_sample_size",
    "half_space_tv_bound",
    "half_space_worst_kl_bound",
    "information_limit",
    "information_rate",
    "interactive_kl_bound",
    "interactive_kl_lower_bound",
    "interactive_minimax_kl_bound",
    "interactive_sample_size",
    "interactive_tv_bound",
    "interactive_tv_lower_bound",
    "lower_bound",
    "noninteractive_kl_lower_bound",
    "noninteractive_tv_lower_bound",
    "nonprivate_bound",
    "offset",
    "pair_floor",
    "rank",
    "risk_floor",
    "sample_complexity",
    "single_noise_scale",
    "soft_bayes_bound",
    "star_amplitude",
    "tv_bound",
    "vector_noise_scale",
    "wma_bound",
    "wma_regret_bound",
]
