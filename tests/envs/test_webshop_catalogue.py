"""Reading official files: what is kept, what is left out, and what bad data is answered with."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from envs.webshop.catalogue import DataError, build, from_raw, read_folder, read_price
from tests.envs import shops


def test_repeated_overlong_and_nan_rows_are_left_out_and_order_is_kept() -> None:
    assert [product.asin[-1] for product in shops.catalogue().products] == list("1234578")


def test_options_are_stripped_lower_cased_and_slashes_spaced_out() -> None:
    shirt = shops.catalogue().by_asin["B000000001"]
    assert shirt.options == (("size", ("large", "x-large")), ("color", ("red", "navy | white")))


def test_queries_are_lower_cased_and_stripped_and_a_single_bullet_is_a_list_of_one() -> None:
    products = shops.catalogue().by_asin
    assert products["B000000001"].query == "men's shirts"
    assert products["B000000007"].bullets == ("one bullet",)


def test_a_product_without_an_attribute_row_gets_the_official_stand_in() -> None:
    assert shops.catalogue().by_asin["B000000007"].attributes == ("DUMMY_ATTR",)


@pytest.mark.parametrize(
    ("pricing", "prices", "tag"),
    [
        (None, (100.0,), "$100.0"),
        ("", (100.0,), "$100.0"),
        ("$14.90", (14.9,), "$14.9"),
        ("$1,985.00", (1985.0,), "$1985.0"),
        ("$7.99 - $12.50", (7.99, 12.5), "$7.99 to $12.5"),
        ("$30$20$10", (30.0, 20.0), "$30.0 to $20.0"),
    ],
)
def test_prices_are_read_and_shown_as_officially(
    pricing: str | None, prices: tuple[float, ...], tag: str
) -> None:
    assert read_price(pricing) == (prices, tag)


@pytest.mark.parametrize("pricing", ["12.50", "$", "free"])
def test_a_price_that_cannot_be_read_is_named_with_its_row(pricing: str) -> None:
    with pytest.raises(DataError, match=r"toy: product row 0: pricing is .*expected dollars"):
        build("toy", [shops.row("B1", "A", pricing=pricing)], {}, {})


@pytest.mark.parametrize("suffix", ["", "_1000", "_100k"])
def test_files_of_any_official_size_suffix_give_the_same_catalogue(tmp_path: Path, suffix: str) -> None:
    read = read_folder(shops.write(tmp_path, suffix))
    assert read.products == shops.catalogue().products
    assert read.digest() == shops.catalogue().digest()


def test_the_digest_sees_a_changed_price_attribute_instruction_or_noun() -> None:
    digests = {shops.catalogue().digest()}
    for change in range(4):
        rows, known, people, nouns = shops.items(), shops.attributes(), shops.human(), shops.nouns()
        if change == 0:
            rows[0]["pricing"] = "$25.01"
        elif change == 1:
            known["B000000005"]["attributes"] = ["cotton"]
        elif change == 2:
            people["B000000005"][0]["instruction"] = "cold wool socks"
        else:
            nouns["B000000005"] = ["socks"]
        digests.add(build("seven products", rows, known, people, nouns).digest())
    assert len(digests) == 5


def test_a_missing_folder_is_a_one_line_error_that_names_it_and_the_files(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"nowhere is not a folder; expected one with items_shuffle\*\.json"
    ) as error:
        read_folder(tmp_path / "nowhere")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["items_shuffle.json", "items_ins_v2.json", "items_human_ins.json"])
def test_a_missing_kind_of_file_is_named(tmp_path: Path, name: str) -> None:
    (shops.write(tmp_path) / name).unlink()
    with pytest.raises(DataError, match=r"expected exactly one " + name[:10] + ".*found none"):
        read_folder(tmp_path)


def test_two_sizes_of_the_same_file_are_refused_by_name(tmp_path: Path) -> None:
    shops.write(shops.write(tmp_path), "_1000")
    with pytest.raises(DataError, match=r"found items_shuffle\.json, items_shuffle_1000\.json"):
        read_folder(tmp_path)


@pytest.mark.parametrize("content", ["[{", "", '"text"', "{}"])
def test_a_malformed_file_is_named(tmp_path: Path, content: str) -> None:
    (shops.write(tmp_path) / "items_shuffle.json").write_text(content)
    with pytest.raises(DataError, match=r"items_shuffle\.json: (cannot be read as JSON|expected a list)"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    "fault",
    [
        {"name": None},
        {"customization_options": ["red"]},
        {"customization_options": {"color": [{"image": None}]}},
        {"query": 3},
    ],
)
def test_a_row_of_another_form_is_named_by_number(fault: dict[str, Any]) -> None:
    rows = [shops.row("B1", "A"), shops.row("B2", "B") | fault]
    with pytest.raises(DataError, match="toy: product row 1"):
        build("toy", rows, {}, {})


def test_a_row_that_is_no_object_is_named_by_number() -> None:
    with pytest.raises(DataError, match="toy: product row 0 is not in the official form"):
        build("toy", ["text"], {}, {})  # type: ignore[list-item]


def test_an_empty_catalogue_is_refused_instead_of_giving_empty_searches() -> None:
    with pytest.raises(DataError, match="no usable product"):
        build("toy", [], {}, {})


def test_an_instruction_without_attributes_is_refused_since_its_reward_is_undefined() -> None:
    with pytest.raises(DataError, match="B1 has an instruction but no instruction_attributes"):
        build("toy", [shops.row("B1", "A")], {"B1": {"attributes": [], "instruction": "Find me a"}}, {})


def test_stored_nouns_must_cover_every_product(tmp_path: Path) -> None:
    nouns = {asin: words for asin, words in shops.nouns().items() if asin != "B000000005"}
    (shops.write(tmp_path) / "title_nouns.json").write_text(json.dumps(nouns))
    with pytest.raises(DataError, match="title nouns lack product B000000005"):
        read_folder(tmp_path)


def test_a_generators_raw_tables_give_the_same_catalogue_as_its_files() -> None:
    @dataclass
    class Raw:
        items: list[dict[str, Any]]
        attributes: dict[str, dict[str, Any]]
        human: dict[str, list[dict[str, Any]]]
        title_nouns: dict[str, list[str]]

    raw = Raw(shops.items(), shops.attributes(), shops.human(), shops.nouns())
    assert from_raw(raw, "made").digest() == shops.catalogue().digest()
