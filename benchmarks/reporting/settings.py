"""Variants of a grid: a method, then the settings that replace the suite's, as in `grpo+empg,zeta=0.1,k=1.0`."""

from __future__ import annotations

import re

SYMBOLS = {"zeta": "ζ"}
_NUMBER = re.compile(r"\d+(\.\d+)?")


def settings_of(variant: str) -> dict[str, str]:
    """Name -> number as it is written; nothing where what follows the method is not of that form."""
    _, *parts = variant.split(",")
    found = dict(part.partition("=")[::2] for part in parts)
    return found if all(name and _NUMBER.fullmatch(value) for name, value in found.items()) else {}


def has_settings(variant: str) -> bool:
    """Whether a variant is one point of a grid."""
    return bool(settings_of(variant))


def split(variant: str) -> tuple[str, tuple[str, ...]]:
    """The method, and its settings as a reader knows them: `("grpo+empg", ("ζ=0.1", "k=1.0"))`."""
    settings = settings_of(variant)
    method = variant.split(",")[0] if settings else variant
    return method, tuple(f"{SYMBOLS.get(name, name)}={value}" for name, value in settings.items())
