"""The published tables are what the published records give, byte for byte."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path, PurePosixPath

import pytest

from benchmarks.reporting import figures
from benchmarks.reporting.files import MANIFEST, written_before
from benchmarks.reporting.report import write_report

PUBLISHED = Path(__file__).resolve().parents[2] / "results" / "published"


def blank(inches: tuple[float, float]) -> bytes:
    """The header of a figure of that size: the page states how large its images are."""
    width, height = (round(figures.DPI * each) for each in inches)
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height)


@pytest.mark.parametrize("name", sorted(path.parent.name for path in PUBLISHED.glob("*/runs")))
def test_the_published_report_follows_from_the_published_records(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawn files depend on the machine's fonts; what step tables are needed for is kept as it is."""
    monkeypatch.setattr(figures, "_png", lambda draw, size: blank(size))
    folder = tmp_path / name
    shutil.copytree(PUBLISHED / name, folder)
    report = write_report(folder / "runs", folder)
    for path in report.files:
        if path.suffix != ".png":
            file = path.relative_to(folder)
            assert path.read_bytes() == (PUBLISHED / name / file).read_bytes(), file
    assert (folder / MANIFEST).read_bytes() == (PUBLISHED / name / MANIFEST).read_bytes()
    names = {PurePosixPath(file).parts[0] for file in written_before(folder)}
    assert {path.name for path in folder.iterdir()} == {"runs", MANIFEST, *names}
