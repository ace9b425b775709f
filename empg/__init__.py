"""Entropy-modulated policy gradients (arXiv 2509.09265): the method, usable with torch alone.

The learner lives in `empg.trainer` and is imported from there, because it also needs transformers' models and
the trajectory types of `agents`.
"""

from empg.advantages import (
    EmpgConfig,
    Modulation,
    clarity_bonus,
    entropy_scale,
    group_advantage,
    modulate,
    modulation,
    normalised_entropy,
    outcome_advantage,
    step_entropy,
    token_values,
)

__all__ = [
    "EmpgConfig",
    "Modulation",
    "clarity_bonus",
    "entropy_scale",
    "group_advantage",
    "modulate",
    "modulation",
    "normalised_entropy",
    "outcome_advantage",
    "step_entropy",
    "token_values",
]
