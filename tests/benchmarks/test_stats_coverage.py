"""The intervals hold the truth about as often as they promise, and the measurement would show if they did not."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from rich.console import Console

from benchmarks import coverage
from benchmarks.coverage import Setting, measure, settings
from benchmarks.reporting.stats import Interval

QUICK = {
    ("Wilson", "134 tasks, rate 5 to 95%"): 2000,
    ("paired difference", "1 seed, 134 tasks"): 250,
    ("paired difference", "3 seeds with sd 2 points, 134 tasks"): 1000,
    ("paired difference", "3 seeds with sd 2 points, 134 tasks, warm start"): 1000,
    ("stratified bootstrap, IQM", "3 benchmarks × 134 tasks, 1 seed"): 250,
    ("stratified bootstrap, IQM", "3 benchmarks × 134 tasks, 3 seeds with sd 2 points"): 250,
    ("stratified bootstrap, mean", "3 benchmarks × 134 tasks, 3 seeds with sd 5 points"): 250,
}
"""Settings that are usual, and as many tables as take about a second each."""


def setting(interval: str, circumstances: str) -> Setting:
    (found,) = [one for one in settings() if (one.interval, one.circumstances) == (interval, circumstances)]
    return found


@pytest.mark.parametrize(("name", "tables"), QUICK.items(), ids=lambda value: str(value))
def test_95_percent_intervals_hold_the_truth_in_93_to_97_percent_of_tables(
    name: tuple[str, str], tables: int
) -> None:
    found = measure(setting(*name), np.random.default_rng(1), tables)
    low, high = coverage.NOMINAL
    assert found.share.low <= high
    assert found.share.high >= low
    assert (found.share.unit, found.share.n) == ("tables", tables)


def test_an_interval_that_is_half_as_wide_as_it_should_be_is_called_too_narrow() -> None:
    honest = setting("Wilson", "134 tasks, rate 5 to 95%")

    def halved(generator: np.random.Generator) -> tuple[Interval, float | None]:
        interval, truth = honest.draw(generator)
        centre, quarter = (interval.low + interval.high) / 2, (interval.high - interval.low) / 4
        return replace(interval, low=centre - quarter, high=centre + quarter), truth

    found = measure(replace(honest, draw=halved), np.random.default_rng(1), 500)
    assert found.verdict == "too narrow"
    assert found.share.high < coverage.NOMINAL[0]


def test_an_interval_of_everything_is_called_too_wide() -> None:
    everything = Setting("all", "policies", "any", lambda _: (Interval(0.5, 0.0, 1.0, "", "tasks", 1), 0.5))
    assert measure(everything, np.random.default_rng(1), 300).verdict == "too wide"


def test_one_seed_read_as_if_of_the_methods_is_measured_as_too_narrow() -> None:
    misread = setting("paired difference", "1 seed, seeds with sd 5 points")
    assert "not promised" in misread.about
    assert measure(misread, np.random.default_rng(1), 250).share.high < coverage.NOMINAL[0]


def test_the_command_prints_every_setting_and_the_same_numbers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    some = (settings()[0], replace(settings()[1], draw=partial(coverage.rate, tasks=20, low=0.1, high=0.9)))
    monkeypatch.setattr(coverage, "settings", lambda: some)
    texts = []
    for _ in range(2):
        shown = io.StringIO()
        coverage.run_coverage(Console(file=shown, width=140), tables=50, seed=3)
        texts.append(shown.getvalue())
    assert texts[0] == texts[1]
    for wanted in ("Wilson", "134 tasks, rate 5 to 95%", "50 simulated tables", "seed: 3"):
        assert wanted in texts[0]
