"""What the command line changes of a suite: one object, from the options to the processes of single runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from typer import Option

from benchmarks.records import safe_name


@dataclass(frozen=True)
class Overrides:
    """Settings that replace a suite's, whatever its scale; None replaces nothing. Each is an option of its name."""

    model: Annotated[
        str | None, Option(help="The policy: a folder, a Hugging Face id, or `smollm2`; not the warm start.")
    ] = None
    dtype: Annotated[str | None, Option(help="Of the weights: float32, bfloat16 or float16.")] = None
    lora: Annotated[int | None, Option(min=1, help="Train adapters of this rank instead of all weights.")] = (
        None
    )
    rollout: Annotated[str | None, Option(help="What samples the episodes: torch or vllm.")] = None
    prompt: Annotated[str | None, Option(help="Style of the prompts and responses.")] = None
    shots: Annotated[int | None, Option(min=0, help="Worked examples in the prompt.")] = None
    retriever: Annotated[
        str | None, Option(help="deepsearch: bm25, dense:MODEL, or the URL of a server.")
    ] = None

    def table(self) -> dict[str, Any]:
        """As tables to merge over those of a suite."""
        merged: dict[str, Any] = {}
        for name, value in given(self).items():
            *tables, key = _PLACES[name]
            place = merged
            for table in tables:
                place = place.setdefault(table, {})
            place[key] = value
        return merged

    def arguments(self) -> tuple[str, ...]:
        """The options that give these, for another process."""
        return tuple(part for name, value in given(self).items() for part in (f"--{name}", str(value)))

    def names(self, own: dict[str, Any]) -> tuple[str, ...]:
        """What tells the folder of a suite that these change from that of the suite itself.

        own: the suite's tables without them, defaults filled in. What it says itself needs no telling.
        """
        told = []
        for name, value in given(self).items():
            found: Any = own
            for key in _PLACES[name]:
                found = found.get(key) if isinstance(found, dict) else None
            if name in _TELLS and value != found:
                told.append(safe_name(_TELLS[name](value)) or name)
        return tuple(told)


def given(options: Any) -> dict[str, Any]:
    """The fields of a dataclass of options that are not as they are by default."""
    found = {field.name: (getattr(options, field.name), field.default) for field in fields(options)}
    return {name: value for name, (value, default) in found.items() if value != default}


NOTHING = Overrides()
_PLACES = {
    "model": ("policy", "model"),
    "dtype": ("policy", "dtype"),
    "lora": ("policy", "lora", "rank"),
    "rollout": ("policy", "rollout"),
    "prompt": ("rollout", "prompt"),
    "shots": ("rollout", "shots"),
    "retriever": ("world", "retriever"),
}
"""The tables and the key that each replaces."""


def model_name(model: str) -> str:
    """How a model is called in folders and tables: the last part of its path or hub id."""
    return Path(model).resolve().name if Path(model).is_dir() else model.rstrip("/").rpartition("/")[2]


_TELLS: dict[str, Callable[[Any], str]] = {
    "model": model_name,
    "dtype": str,
    "lora": lambda rank: f"lora{rank}",
    "rollout": str,
    "prompt": str,
    "shots": lambda shots: f"{shots}shot",
}
"""What of a folder's name comes from each; runs with other retrievers are known by their suite's name alone."""


def with_options(**kinds: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each field of some dataclasses; it gets the objects as arguments of these names."""
    hints = {name: get_type_hints(kind, include_extras=True) for name, kind in kinds.items()}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def called(**values: Any) -> None:
            chosen = {
                name: kind(**{field: values.pop(field) for field in hints[name]})
                for name, kind in kinds.items()
            }
            command(**values, **chosen)

        own = inspect.signature(command, eval_str=True)
        kept = [parameter for parameter in own.parameters.values() if parameter.name not in kinds]
        options = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=hints[name][field.name],
            )
            for name, kind in kinds.items()
            for field in fields(kind)
        ]
        called.__name__, called.__doc__ = command.__name__, command.__doc__
        vars(called)["__signature__"] = own.replace(parameters=[*kept, *options])
        called.__annotations__ = {each.name: each.annotation for each in (*kept, *options)}
        return called

    return decorate


with_overrides = with_options(overrides=Overrides)
