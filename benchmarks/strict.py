"""Strict models: tables become frozen objects, and what does not fit is said in one line."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

Checked = TypeVar("Checked")


class ConfigError(ValueError):
    """A setting is wrong; the message is one line that names it and what was expected."""


class Strict(BaseModel):
    """Immutable, no unknown keys, no silent conversion of `"3"` or `true` to a number, no NaN."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables, the second winning key by key; anything that is not a table is replaced whole."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def validate(kind: type[Checked], table: Mapping[str, Any], where: str) -> Checked:
    """A table as a strict model or dataclass.

    Raises `ConfigError` with one line: where, which key, its value, what was expected.
    """
    # A plain dataclass takes its strictness from the model around it, and so do those inside it.
    wrapper: Any = create_model("Wrapper", __base__=Strict, table=(kind, ...))
    try:
        found: Checked = wrapper.model_validate_json(json.dumps({"table": table}, default=str)).table
    except ValidationError as error:
        raise ConfigError(_one_line(kind, where, error)) from None
    return found


def _one_line(kind: type[Any], where: str, error: ValidationError) -> str:
    """The most telling problem: an unknown key before what it left missing."""
    problems = error.errors(include_url=False)
    unknown = ("unexpected_keyword_argument", "extra_forbidden")
    problem = min(problems, key=lambda found: found["type"] not in unknown)
    place = tuple(str(part) for part in problem["loc"][1:])
    if problem["type"] in unknown:
        known = ", ".join(_keys_at(kind, place[:-1])) or "none"
        return f"{'.'.join((where, *place))}: unknown key, expected one of: {known}"
    said = problem["msg"].removeprefix("Value error, ").replace("\n", " ")
    got = (
        ""
        if problem["type"] in ("missing", "missing_argument", "value_error")
        else f", got {problem['input']!r}"
    )
    return f"{'.'.join((where, *place))}: {said}{got}"


def _keys_at(kind: Any, place: tuple[str, ...]) -> tuple[str, ...]:
    """Which keys a (nested) table may have."""
    if get_origin(kind) in (Union, types.UnionType):
        options = [_keys_at(option, place) for option in get_args(kind)]
        return next((keys for keys in options if keys), ())
    if get_origin(kind) is tuple:
        return _keys_at(get_args(kind)[0], place[1:]) if place else ()
    if get_origin(kind) is dict:
        return _keys_at(get_args(kind)[1], place[1:]) if place else ()
    if is_dataclass(kind):
        names = {field.name for field in fields(kind)}
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        names = set(kind.model_fields)
    else:
        return ()
    if not place:
        return tuple(sorted(names))
    hints = get_type_hints(kind)
    return _keys_at(hints.get(place[0]), place[1:])
