"""The private log tells who and why to its owner alone; the public summary tells no identity and no count."""

import json
import re
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.io.atomic_folder import AtomicFolder
from discreet.programme.release import Disclosure
from discreet.swap.output import (
    LOG,
    log_table,
    markdown,
    public_summary,
    rounded_share,
    write_log,
    write_summary,
)
from discreet.swap.result import EXCLUDED, WHY, Excluded, Why, profile_names
from tests.swap.village_files import SECRET, TOWNS, build, household_ids, swapped, tables

PAIRS = [(0, 1), (2, 7)]


@pytest.mark.parametrize("kind", ["numbers", "text"])
def test_the_log_names_true_ids_levels_profiles_and_reasons(tmp_path: Path, kind: str) -> None:
    ids = household_ids(kind)
    lines = log_table(build(tmp_path, kind), swapped(PAIRS, kind), SECRET).to_pylist()
    by_id = {line["household"]: line for line in lines}
    assert set(by_id) == {ids[home] for home in (0, 1, 2, 7, 23)}
    for one, two in PAIRS:
        assert by_id[ids[one]]["partner"] == ids[two]
        assert by_id[ids[two]]["partner"] == ids[one]
        assert (by_id[ids[one]]["why"], by_id[ids[two]]["why"]) == ("at risk", "donor")
        assert by_id[ids[one]]["from"] == by_id[ids[two]]["to"] == TOWNS[one % 4]
        assert by_id[ids[one]]["level"] == "town"
        assert by_id[ids[one]]["profile"] == "SIZE"
    kept = by_id[ids[23]]
    assert (kept["why"], kept["at_risk_at"]) == ("no donor", "region")
    assert kept["partner"] is kept["level"] is kept["to"] is kept["inside_parent"] is None


def test_the_log_says_why_a_household_was_excluded(tmp_path: Path) -> None:
    result = swapped(PAIRS)
    kept = result.why == Why.NO_DONOR
    why = np.where(kept, Why.EXCLUDED, result.why).astype(np.uint8)
    excluded = np.where(kept, Excluded.SHARED_DWELLING, Excluded.NO).astype(np.uint8)
    result = replace(result, why=why, households=replace(result.households, excluded=excluded))
    lines = log_table(build(tmp_path), result, SECRET).to_pylist()
    assert [line["excluded"] for line in lines if line["why"] == "excluded"] == ["shared dwelling"]


def test_ids_are_found_where_persons_are_the_only_table(tmp_path: Path) -> None:
    programme = build(tmp_path, households=tables()["households"].drop_columns(["hid"]))
    lines = log_table(programme, swapped(PAIRS), SECRET).to_pylist()
    assert {line["household"] for line in lines} == {
        household_ids("numbers")[home] for home in (0, 1, 2, 7, 23)
    }


def test_the_log_is_for_its_owner_only_and_an_empty_one_can_be_read(tmp_path: Path) -> None:
    result = swapped([])
    result = replace(result, why=np.zeros_like(result.why))
    with AtomicFolder(tmp_path / "private", "--report") as folder:
        assert write_log(build(tmp_path / "in"), result, SECRET, folder) == 0
        folder.publish()
    path = tmp_path / "private" / LOG
    assert pq.read_table(path).num_rows == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_reason_has_a_name(tmp_path: Path) -> None:
    assert set(WHY) == set(Why)
    assert set(EXCLUDED) == set(Excluded)
    rule = build(tmp_path).swap
    assert rule is not None
    assert profile_names(rule) == ("SIZE",)


@pytest.mark.parametrize("disclose", Disclosure)
def test_the_summary_holds_no_id_no_region_and_no_count(tmp_path: Path, disclose: Disclosure) -> None:
    rule = build(tmp_path / "in").swap
    assert rule is not None
    summary = public_summary(swapped(PAIRS), rule, ("region", "town"), disclose)
    with AtomicFolder(tmp_path / "out", "--out") as folder:
        write_summary(summary, folder)
        folder.publish()
    text = "".join(path.read_text() for path in (tmp_path / "out").iterdir())
    written = json.loads((tmp_path / "out" / "swap-summary.json").read_text())
    assert written["exchanged"] == list(summary.exchanged) == ["region", "town", *rule.carry]
    assert written.get("share_of_households_swapped") == summary.share
    assert written.get("share_of_households_swapped_at", {}) == summary.share_at
    assert ("rule" in written) is (disclose is Disclosure.LAW)
    assert not any(str(one) in text for one in (*household_ids("numbers"), *TOWNS))
    # 24 households: steps are of ten households, and what the rule declares is k, rate and cap
    allowed = {"42", "0.0", "3"} if disclose is Disclosure.LAW else {"42"}
    assert set(re.findall(r"\d[\d.]*\d|\d", text)) <= allowed


def test_what_is_disclosed_grows_with_the_declaration(tmp_path: Path) -> None:
    rule = build(tmp_path).swap
    assert rule is not None
    none, variance, law = (
        public_summary(swapped(PAIRS), rule, ("region", "town"), disclose)
        for disclose in (Disclosure.NONE, Disclosure.VARIANCE, Disclosure.LAW)
    )
    assert (none.share, none.share_at, none.rule) == (None, {}, None)
    assert variance.share is not None
    assert variance.rule is None
    assert (law.share, law.share_at, law.rule) == (variance.share, variance.share_at, rule)
    assert "SEX" in markdown(law)
    assert "SEX" not in markdown(variance)
    assert "share" not in markdown(none)


@given(st.integers(1, 10**8).flatmap(lambda whole: st.tuples(st.integers(0, whole), st.just(whole))))
def test_a_rounded_share_stands_for_ten_households_and_hides_few(pair: tuple[int, int]) -> None:
    part, whole = pair
    word, share = rounded_share(part, whole).split()
    number = share.removesuffix("%")
    assert word in ("about", "under")
    assert share == f"{number}%"
    if word == "under":
        assert rounded_share(0, whole) == rounded_share(part, whole)
        assert int(number) * whole >= 1000
    else:
        assert abs(int(number) - 100 * part / whole) <= max(0.5, 1000 / whole)


def test_shares_of_a_census() -> None:
    assert rounded_share(31_415, 1_000_000) == "about 3%"
    assert rounded_share(4_000, 1_000_000) == rounded_share(0, 1_000_000) == "under 1%"
    assert rounded_share(0, 0) == "under 100%"
