"""The figures of a suite as a whole: learning curves and KL loss, looks, notes, and files that never change."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from benchmarks import records
from benchmarks.reporting import figures
from benchmarks.reporting.figures import curves, style
from benchmarks.reporting.figures.arms import Arm, arms_of
from benchmarks.reporting.figures.style import Chart
from benchmarks.reporting.load import load_suite
from benchmarks.reporting.schema import RecordError
from tests.benchmarks.report_runs import add_run, full_suite, write_gradients

PNG = b"\x89PNG\r\n\x1a\n"


def arm(suite: Path, variant: str = "grpo") -> Arm:
    return next(one for one in arms_of(load_suite(suite)) if one.variant == variant)


def kl(suite: Path) -> curves.Curve:
    return curves.metric(arm(suite), lambda row: row.kl_loss)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def charts(suite: Path) -> dict[str, Chart]:
    return {chart.name: chart for chart in figures.charts(load_suite(suite))}


def drawn(chart: Chart) -> Figure:
    """Laid out, not rendered."""
    figure = Figure()
    chart.draw(figure)
    return figure


def texts(chart: Chart) -> str:
    return "\n".join(text.get_text() for text in drawn(chart).findobj(Text))


def points(chart: Chart) -> list[tuple[list[float], list[float]]]:
    """x and y of every line of the first panel."""
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in drawn(chart).axes[0].get_lines()]


def set_tokens(run: Path, totals: Sequence[int | None]) -> None:
    logged = records.read_jsonl(run / "metrics.jsonl")
    changed = [row | {"sampled_tokens_total": total} for row, total in zip(logged, totals, strict=True)]
    records.write_jsonl(run / "metrics.jsonl", changed)


# P1: points stand at the step of their row


def test_p1_every_point_stands_at_the_iteration_of_its_row_also_after_a_resume(tmp_path: Path) -> None:
    add_run(
        tmp_path, "grpo", iterations=(0, 1, 10, 11), kl=(0.1, 0.2, 0.3, 0.4), success=(0.1, 0.2, 0.5, 0.6)
    )
    found = charts(tmp_path)
    for name, column, value in (("kl_loss", "kl_loss", "0.3"), ("learning_curve", "success", "0.5")):
        by_iteration = {row["iteration"]: row[column] for row in rows(found[name].csv)}
        assert by_iteration["10"] == value
        ((at, values),) = points(found[name])
        assert values[at.index(10)] == pytest.approx(float(value) * (100 if column == "success" else 1))


def test_p1_an_iteration_that_was_logged_twice_is_refused(tmp_path: Path) -> None:
    add_run(tmp_path, "grpo", iterations=(0, 3, 3))
    with pytest.raises(RecordError, match=r"metrics\.jsonl: iteration 3 after 3"):
        load_suite(tmp_path)


def test_p1_success_by_tokens_stands_at_the_tokens_of_its_own_row(tmp_path: Path) -> None:
    run = add_run(tmp_path, "grpo", iterations=(0, 1, 5), success=(0.1, 0.2, 0.6))
    set_tokens(run, (1000, 2500, 9000))
    chart = charts(tmp_path)["learning_curve_tokens"]
    found = {row["iteration"]: row for row in rows(chart.csv)}
    assert (found["5"]["sampled_tokens_total"], found["5"]["success"]) == ("9000", "0.6")
    ((at, values),) = points(chart)
    assert (at[5], values[5]) == (9000.0, pytest.approx(60.0))
    assert np.isnan(at[2:5]).all()


# P6: the same treatment of all arms, raw points kept, nothing interpolated


def test_p6_every_raw_kl_value_is_kept_at_its_own_iteration(tmp_path: Path) -> None:
    add_run(tmp_path, "grpo", 0, iterations=(0, 1, 2), kl=(0.0, 0.5, 0.1))
    add_run(tmp_path, "grpo", 1, iterations=(0, 1, 2), kl=(0.0, 0.3, 0.2))
    chart = charts(tmp_path)["kl_loss"]
    found = rows(chart.csv)
    by_seed = {(row["seed"], row["iteration"]): row["kl_loss"] for row in found}
    assert by_seed["0", "1"] == "0.5"
    assert by_seed["1", "2"] == "0.2"
    assert [row["mean_over_seeds"] for row in found if row["seed"] == "0"] == ["0", "0.4", "0.15"]
    shown = [values for _, values in points(chart)]
    assert shown == [[0.0, 0.5, 0.1], [0.0, 0.3, 0.2], pytest.approx([0.0, 0.4, 0.15])]


def test_p6_a_mean_over_ragged_runs_stops_at_the_shortest_and_is_flagged(tmp_path: Path) -> None:
    add_run(tmp_path, "grpo", 0, iterations=range(100), kl=[1.0] * 100)
    add_run(tmp_path, "grpo", 1, iterations=range(80), kl=[3.0] * 80)
    curve = kl(tmp_path)
    assert (curve.common, curve.ragged, curve.mean.shape) == (80, True, (80,))
    found = charts(tmp_path)
    late = [row for row in rows(found["kl_loss"].csv) if int(row["iteration"]) >= 80]
    assert {(row["mean_over_seeds"], row["reached_by_all_seeds"]) for row in late} == {("", "no")}
    assert {row["kl_loss"] for row in late if row["seed"] == "0"} == {"1"}
    for name in ("kl_loss", "learning_curve", "learning_curve_tokens"):
        assert "GRPO (n=2 seeds); stops at the shortest run" in texts(found[name])
    ((at, _),) = points(found["learning_curve"])
    assert max(at) == 79


def test_p6_a_gap_in_a_record_stays_a_gap_and_is_not_bridged(tmp_path: Path) -> None:
    add_run(tmp_path, "grpo", iterations=(0, 1, 4, 5), kl=(0.0, 0.1, None, 0.5))
    curve = kl(tmp_path)
    assert curve.iterations == (0, 1, 2, 3, 4, 5)
    assert np.isnan(curve.values[0]).tolist() == [False, False, True, True, True, False]
    assert np.isnan(curve.mean).tolist() == [False, False, True, True, True, False]
    ((_, values),) = points(charts(tmp_path)["kl_loss"])
    assert np.isnan(values).tolist() == [False, False, True, True, True, False]


def test_p6_all_variants_are_drawn_from_the_same_column_without_smoothing(tmp_path: Path) -> None:
    noisy = (0.5, 0.0, 0.9, 0.1, 0.7)
    for variant in ("grpo", "dapo+empg"):
        add_run(tmp_path, variant, kl=noisy)
    chart = charts(tmp_path)["kl_loss"]
    assert [values for _, values in points(chart)] == [list(noisy)] * 2
    assert "same estimator and weighting for all variants" in chart.note


def test_the_mean_is_missing_where_any_seed_is_missing(tmp_path: Path) -> None:
    add_run(tmp_path, "grpo", 0, iterations=(0, 1), kl=(0.2, None))
    add_run(tmp_path, "grpo", 1, iterations=(0, 1), kl=(0.4, 0.9))
    mean = kl(tmp_path).mean
    assert mean[0] == pytest.approx(0.3)
    assert np.isnan(mean[1])


def test_the_mean_by_tokens_averages_both_coordinates_at_equal_iterations(tmp_path: Path) -> None:
    one = add_run(tmp_path, "grpo", 0, iterations=(0, 1), success=(0.2, 0.4))
    two = add_run(tmp_path, "grpo", 1, iterations=(0, 1), success=(0.4, 0.8))
    set_tokens(one, (1000, 2000))
    set_tokens(two, (3000, 12_345_678_901))
    chart = charts(tmp_path)["learning_curve_tokens"]
    last = rows(chart.csv)[-1]
    assert (last["sampled_tokens_total"], last["mean_sampled_tokens_total"]) == (
        "12345678901",
        "6172840450.5",
    )
    assert last["mean_success"] == "0.6"
    assert points(chart)[-1] == ([2000.0, 6172840450.5], [pytest.approx(30.0), pytest.approx(60.0)])


def test_tokens_that_fall_are_an_error_that_names_file_and_iteration(tmp_path: Path) -> None:
    set_tokens(add_run(tmp_path, "grpo", iterations=(0, 1, 2)), (1000, 3000, 2000))
    with pytest.raises(RecordError, match=r"metrics\.jsonl: .* falls from 3000 to 2000 at iteration 2"):
        charts(tmp_path)


def test_the_band_goes_from_the_lowest_to_the_highest_seed(tmp_path: Path) -> None:
    for seed, value in enumerate((0.1, 0.5, 0.3)):
        add_run(tmp_path, "grpo", seed, iterations=(0, 1), success=(value, value))
    (band,) = drawn(charts(tmp_path)["learning_curve"]).axes[0].collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (pytest.approx(10.0), pytest.approx(50.0))


# What is missing is said


def test_missing_seeds_missing_variants_and_seeds_without_values_are_named(tmp_path: Path) -> None:
    add_run(tmp_path, "grpo", 0, iterations=(0, 1), kl=(0.1, 0.2))
    add_run(tmp_path, "grpo", 1, iterations=(0, 1), kl=(None, None))
    add_run(tmp_path, "dapo", 0)
    add_run(tmp_path, "dapo", 1, complete=False)
    add_run(tmp_path, "grpo+empg", 0, complete=False)
    chart = charts(tmp_path)["kl_loss"]
    assert "GRPO (n=2 seeds); 1 without values" in texts(chart)
    assert "DAPO (1/2 seeds)" in texts(chart)
    assert "No complete run of GRPO+EMPG, DAPO+EMPG." in chart.note


def test_the_note_names_suite_and_model_size(tmp_path: Path) -> None:
    full_suite(tmp_path / "webshop")
    for chart in charts(tmp_path / "webshop").values():
        assert "Suite webshop, 0.664M params." in chart.note


OPTIONAL = ("steps.parquet", "tokens.parquet", "gradients.parquet", "gradients.jsonl")


def test_figures_whose_record_no_run_has_are_not_made(tmp_path: Path) -> None:
    run = add_run(tmp_path, "grpo+empg")
    for name in OPTIONAL:
        (run / name).unlink()
    assert list(charts(tmp_path)) == ["learning_curve", "learning_curve_tokens", "kl_loss"]


def test_empty_records_are_no_records(tmp_path: Path) -> None:
    run = add_run(tmp_path, "grpo+empg")
    for name in ("steps.parquet", "gradients.parquet"):
        columns = records.pq.read_schema(run / name).names
        records.write_parquet(run / name, dict.fromkeys(columns, ()))
    write_gradients(run, dict.fromkeys(columns, ()), [])
    (run / "tokens.parquet").unlink()
    assert list(charts(tmp_path)) == ["learning_curve", "learning_curve_tokens", "kl_loss"]


def test_runs_that_lack_a_record_are_named_in_the_note_and_not_counted(tmp_path: Path) -> None:
    for seed in (0, 1, 2):
        run = add_run(tmp_path, "grpo+empg", seed)
        for name in OPTIONAL if seed else ():
            (run / name).unlink()
    found = charts(tmp_path)
    missing = "not recorded: GRPO+EMPG seeds 1, 2."
    for name in ("entropy_change", "credit", "gradient_norm", "gradient_variance"):
        assert missing in found[name].note, name
    assert {row["seeds"] for row in rows(found["credit"].csv)} == {"1"}
    assert {row["seed"] for row in rows(found["gradient_variance"].csv)} == {"0", "all"}
    assert "GRPO+EMPG (1/3 seeds)" in texts(found["gradient_variance"])


def test_a_suite_without_a_trained_run_has_no_figures(tmp_path: Path) -> None:
    add_run(tmp_path, "warm-start")
    assert figures.build(load_suite(tmp_path)) == {}


# Looks


def test_every_variant_differs_from_every_other_in_colour_line_and_marker() -> None:
    known = list(style.LOOKS.values())
    for part in ("colour", "line", "marker", "hatch"):
        assert len({getattr(look, part) for look in known}) == len(known)
    grid = style.looks([*style.LOOKS, *(f"grpo+empg-{place}" for place in range(16))])
    assert len({(look.colour, look.line, look.marker) for look in grid.values()}) == 20


def test_a_variant_looks_the_same_whatever_else_is_drawn() -> None:
    assert style.looks(["dapo", "other"])["dapo"] == style.looks(["grpo", "dapo"])["dapo"]


@pytest.mark.parametrize("name", ["_hidden", "$a^b$ $", "<script>&\x1b[31m\nx -- y"])
def test_a_foreign_name_is_shown_literally_in_every_figure_and_breaks_none(tmp_path: Path, name: str) -> None:
    suite = tmp_path / "s"
    run = add_run(suite, "grpo+x")
    info = records.read_json(run / "run.json")
    records.write_json(run / "run.json", info | {"variant": name, "suite": name})
    shown = " ".join(name.split()).replace("\x1b", "\\x1b")
    found = charts(suite)
    for chart in found.values():
        assert shown in texts(chart), chart.name
    ElementTree.fromstring(found["kl_loss"].files()["kl_loss.svg"])


# Files


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    suite = full_suite(tmp_path_factory.mktemp("figures") / "webshop", seeds=(0, 1))
    return suite, figures.build(load_suite(suite))


def test_every_figure_has_data_png_and_svg(built: tuple[Path, dict[str, bytes]]) -> None:
    _, files = built
    assert tuple(files) == figures.FILES
    for name, content in files.items():
        if name.endswith("png"):
            assert content.startswith(PNG), name
        if name.endswith("svg"):
            assert ElementTree.fromstring(content).tag == "{http://www.w3.org/2000/svg}svg"


def test_the_same_records_give_the_same_bytes_under_another_users_settings(
    built: tuple[Path, dict[str, bytes]],
) -> None:
    suite, files = built
    settings = {"lines.linewidth": 9.0, "font.size": 20.0, "svg.fonttype": "none", "savefig.dpi": 40}
    with matplotlib.rc_context(settings):
        again = figures.build(load_suite(suite))
    assert again == files


def test_files_hold_neither_date_nor_version_nor_place(built: tuple[Path, dict[str, bytes]]) -> None:
    suite, files = built
    for name, content in files.items():
        for word in (b"matplotlib v", b"matplotlib.org", b"dc:date", str(suite).encode()):
            assert word.lower() not in content.lower(), (name, word)


def test_an_svg_says_in_words_what_it_shows(built: tuple[Path, dict[str, bytes]]) -> None:
    text = built[1]["kl_loss.svg"].decode()
    assert "<title>KL loss per update</title>" in text
    assert "k3 estimate of KL(policy ‖ warm start)" in text


def test_a_figure_changes_when_a_value_changes(tmp_path: Path) -> None:
    add_run(tmp_path / "a", "grpo", kl=(0.0, 0.1, 0.2, 0.3, 0.4))
    add_run(tmp_path / "b", "grpo", kl=(0.0, 0.1, 0.2, 0.3, 0.5))
    one, two = (charts(tmp_path / name)["kl_loss"].files() for name in ("a", "b"))
    for name, content in one.items():
        assert content != two[name], name


def test_many_seeds_do_not_make_an_svg_large(tmp_path: Path) -> None:
    for seed in range(style.CROWD + 1):
        add_run(tmp_path, "grpo", seed, iterations=range(150), kl=[0.1] * 150)
    assert len(charts(tmp_path)["kl_loss"].files()["kl_loss.svg"]) < 500_000


def test_nothing_overlaps_and_nothing_reaches_over_the_edge(built: tuple[Path, dict[str, bytes]]) -> None:
    for chart in figures.charts(load_suite(built[0])):
        with matplotlib.style.context(["default", style.SETTINGS]):
            figure = style.laid_out(chart)
            (legend,) = figure.legends
            parts = [axes.get_tightbbox() for axes in figure.axes]
            parts += [legend.get_window_extent(), *(text.get_window_extent() for text in figure.texts)]
        for place, part in enumerate(parts):
            assert figure.bbox.x0 - 1 <= part.x0, chart.name
            assert part.x1 <= figure.bbox.x1 + 1, chart.name
            assert not any(part.overlaps(other) for other in parts[:place]), chart.name
