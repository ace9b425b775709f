"""Figures as the page shows them: an image that lies beside it, what it shows, and the same in other files."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from xml.etree import ElementTree

_DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"
WIDE = 1.7
_PNG_HEADER = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Figure:
    """One figure: its image, and all files of its stem."""

    title: str
    caption: str
    """What was aggregated and how; empty where its files do not say."""
    image: str
    size: tuple[int, int] | None
    """Width and height in pixels, so that nothing moves when the image arrives; None where unknown."""
    files: tuple[str, ...]

    @property
    def data(self) -> str:
        """The file with its numbers; empty where there is none."""
        return next((name for name in self.files if name.endswith(".csv")), "")

    @property
    def wide(self) -> bool:
        """Whether it takes the room of two."""
        return self.size is not None and self.size[0] > WIDE * self.size[1]


def figures_of(contents: Mapping[str, bytes]) -> list[Figure]:
    """One figure per stem that has an image, in the given order; a vector image is preferred."""
    stems: dict[str, dict[str, str]] = {}
    for name in contents:
        stems.setdefault(PurePath(name).stem, {})[PurePath(name).suffix] = name
    return [
        _figure(stem, names, contents) for stem, names in stems.items() if {".svg", ".png"} & names.keys()
    ]


def _figure(stem: str, names: Mapping[str, str], contents: Mapping[str, bytes]) -> Figure:
    title, caption = described(contents[names[".svg"]]) if ".svg" in names else ("", "")
    return Figure(
        title=title or stem.replace("_", " ").capitalize(),
        caption=caption,
        image=names.get(".svg") or names[".png"],
        size=png_size(contents[names[".png"]]) if ".png" in names else None,
        files=tuple(sorted(names.values())),
    )


def described(svg: bytes) -> tuple[str, str]:
    """Title and description in an SVG file's metadata; empty where it has none."""
    root = ElementTree.fromstring(svg)
    title, description = (
        next((found.text or "" for found in root.iter(f"{_DUBLIN_CORE}{name}")), "")
        for name in ("title", "description")
    )
    return title, description


def png_size(content: bytes) -> tuple[int, int] | None:
    """Width and height in pixels as a PNG's header states them; None for anything else."""
    if len(content) < 24 or not content.startswith(_PNG_HEADER):
        return None
    width, height = struct.unpack(">II", content[16:24])
    return width, height
