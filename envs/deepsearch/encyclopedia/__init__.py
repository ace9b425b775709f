"""An invented encyclopedia and multi-hop questions about it, generated without any download.

`generate` makes both from a seed; `check` proves that every question is answerable from the corpus and only there;
`parse_question` and `read_value` read questions and passages by the same tables that wrote them.
"""

from envs.deepsearch.encyclopedia.check import check
from envs.deepsearch.encyclopedia.encyclopedia import Encyclopedia, generate
from envs.deepsearch.encyclopedia.schema import (
    EncyclopediaError,
    Entity,
    Fact,
    MultiHopQuestion,
    Settings,
    Step,
)
from envs.deepsearch.encyclopedia.wordings import ParsedQuestion, parse_question, read_aliases, read_value

__all__ = [
    "Encyclopedia",
    "EncyclopediaError",
    "Entity",
    "Fact",
    "MultiHopQuestion",
    "ParsedQuestion",
    "Settings",
    "Step",
    "check",
    "generate",
    "parse_question",
    "read_aliases",
    "read_value",
]
