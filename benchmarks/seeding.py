"""Randomness named by place: a stream depends on where it is used, never on what was drawn before it.

A stopped and resumed run therefore needs no saved generator state.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """First coordinate of every place, so that no two uses can share a stream."""

    TRAIN = 0
    """Sampling in training episodes: (TRAIN, iteration, attempt, task, sample)."""
    TASKS = 1
    """Order of the train tasks: (TASKS, attempt, epoch)."""
    EVALUATE = 2
    """Sampling in evaluation episodes: (EVALUATE, mode, task, sample)."""
    DEMONSTRATE = 3
    """Choices of a demonstrator: (DEMONSTRATE, task, sample), in other worlds (DEMONSTRATE, world, task, sample)."""
    DEV = 5
    """Sampling in episodes of the dev panel: (DEV, mode, task, sample)."""
    WORLDS = 4
    """Seeds of generated worlds that only teach: (WORLDS, world)."""
    SHOTS = 6
    """Worked examples of a prompt: which tasks, (SHOTS,), and their demonstrator's choices, (SHOTS, task)."""


def generator(seed: int, *place: int) -> np.random.Generator:
    """The random stream of one place in a run, such as `(Stream.TASKS, attempt, epoch)`.

    `spawn_key` keeps `(1,)` and `(1, 0)` apart, which plain entropy lists do not.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(int(part) for part in place)))
