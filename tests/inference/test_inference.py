"""What a data user calls: noise from a release, tables of every kind, results with a sentence and both p-values."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import chi2

from discreet import inference
from discreet.errors import Mistakes
from discreet.inference import (
    KnownLaw,
    binomial,
    cross_table,
    difference,
    independence,
    independence_of_many,
    interval,
    loglinear,
    noise_by,
    noise_of,
    noise_of_law,
    noise_of_ptable_file,
    ratio,
    total,
)
from discreet.inference.tables import long_table
from discreet.io.ptable_files import PTableFormat, write_ptable
from discreet.maths.cells.lookup import Order, build
from discreet.maths.inference.binomial import BinomialFit
from discreet.maths.inference.intervals import Geometric
from discreet.maths.noise.additive import truncated_laplace
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import Negatives, Publishing
from discreet.perturb.noise import cell_key_noise
from discreet.programme.release import Disclosure
from discreet.release.noise_entry import NoiseEntry, entry_of
from discreet.release.reader import open_release
from tests.release.small import cubes as small_cubes
from tests.release.small import publish, table

LAPLACE = noise_by("laplace", epsilon=0.5, bound=7)
TABLE = [[52, 61, 40], [33, 41, 30], [20, 33, 17]]


def changed(folder: Path, noise: NoiseEntry) -> Path:
    """The release with other words on its noise, sealed anew."""
    publish(folder)
    manifest = open_release(folder).manifest.model_copy(update={"noise": noise})
    (folder / "manifest.json").write_text(manifest.to_json(), encoding="utf-8")
    return folder


def private(others: dict[str, str]) -> NoiseEntry:
    return NoiseEntry.model_validate(
        {
            "kind": "geometric",
            "disclose": "law",
            "drawing": "description",
            "zeros": "structural",
            "publishing": {"negatives": "zero", "rounding": 1, "threshold": 3},
            "parameters": {"cell": "1/2", "other_cells": others},
        }
    )


def test_three_lines_are_enough() -> None:
    frame = pd.DataFrame(TABLE, index=["a", "b", "c"], columns=["x", "y", "z"])
    noise = noise_by("laplace", epsilon=0.5, bound=7)
    assert independence(frame, noise).p_value > 0.5


@pytest.mark.parametrize(
    "form",
    [
        TABLE,
        np.array(TABLE),
        np.array(TABLE, dtype=np.float64),
        pd.DataFrame(TABLE),
        pa.table({"row": ["a", "b", "c"], **{f"c{k}": [row[k] for row in TABLE] for k in range(3)}}),
    ],
)
def test_a_table_may_come_in_any_form(form: Any) -> None:
    assert independence(form, LAPLACE).statistic == independence(TABLE, LAPLACE).statistic


def test_results_carry_a_sentence_and_both_p_values() -> None:
    found = independence(TABLE, LAPLACE)
    assert "with the noise allowed for" in found.sentence
    assert found.p_value > found.naive_p_value
    told = json.loads(json.dumps(found.summary()))
    assert told["df"] == 4
    assert set(told["chi_square_p"]) == {"noise_aware", "naive"}


def test_noise_that_looks_like_dependence_is_told() -> None:
    rng = np.random.default_rng(4)
    noise = noise_by("laplace", epsilon="0.1", bound=10)
    true = rng.poisson(20, (6, 6))
    found = independence(
        true + rng.choice(noise.counts.change.values, (6, 6), p=noise.counts.change.p), noise
    )
    assert found.naive_p_value < 0.05 < found.p_value
    assert "explained by the noise" in found.sentence


def test_many_tables_are_the_single_ones() -> None:
    tables = np.random.default_rng(1).poisson(30, (4, 3, 3))
    many = independence_of_many(tables, LAPLACE, simulations=19)
    assert [one.statistic for one in many] == pytest.approx(
        [independence(one, LAPLACE, simulations=19).statistic for one in tables]
    )


def test_zeros_without_negatives_are_remarked() -> None:
    assert any("published as zero" in one for one in independence([[0, 5], [9, 3]], LAPLACE).caveats)
    clipped = noise_by("laplace", negatives="zero", epsilon=0.5, bound=7)
    assert not any("published as zero" in one for one in independence([[0, 5], [9, 3]], clipped).caveats)


def test_the_noise_of_a_release_that_tells_its_law(tmp_path: Path) -> None:
    law = PTableLaw(solve(PTableParameters(2, 1.0, 0)))
    noise = noise_of(changed(tmp_path / "r", entry_of(cell_key_noise(law, variance=1.0, bound=2))))
    assert noise.caveats == ()
    found = interval(12, noise)
    assert 10 <= found.interval.low <= found.interval.high <= 14


def test_a_release_that_tells_the_variance_only_comes_with_a_caveat(tmp_path: Path) -> None:
    publish(tmp_path / "r")
    noise = noise_of(str(tmp_path / "r"))
    assert noise.counts.change.variance == pytest.approx(2.0, rel=1e-3)
    assert any("variance of at most 2" in one for one in interval(12, noise).caveats)


def test_a_release_that_tells_nothing_is_refused(tmp_path: Path) -> None:
    silent = cell_key_noise(variance=1.0, bound=2).public(Disclosure.NONE)
    with pytest.raises(Mistakes, match="does not publish its law; ask the office"):
        noise_of(changed(tmp_path / "r", entry_of(silent)))


def test_post_processing_and_laws_that_differ_are_read_from_the_release(tmp_path: Path) -> None:
    folder = changed(tmp_path / "r", private({"persons///total": "2"}))
    with pytest.raises(Mistakes, match="name the cross-tabulation"):
        noise_of(folder)
    noise = noise_of(folder, "persons///total")
    assert noise.counts.publishing == Publishing(Negatives.ZERO, threshold=3)
    assert noise.counts.change.variance < noise_of(folder, "persons///SEX:1").counts.change.variance


def test_a_cross_table_is_read_from_a_release(tmp_path: Path) -> None:
    publish(tmp_path / "r")
    cube = next(one for one in small_cubes() if {axis.variable for axis in one.axes} >= {"AGE", "SEX"})
    found = cross_table(tmp_path / "r", cube.id, ["SEX", "AGE"])
    assert found.axes == ("SEX", "AGE")
    assert found.labels[0] == ("1", "2")
    published = table(cube)
    grid = np.zeros([len(axis) for axis in cube.axes], dtype=np.int64).ravel()
    grid[published.cells] = published.values
    shaped = grid.reshape([len(axis) for axis in cube.axes])
    at: list[Any] = [0] * shaped.ndim
    for k, axis in enumerate(cube.axes):
        if axis.variable == "SEX":
            at[k] = list(axis.codes).index("2")
        elif axis.variable == "AGE":
            at[k] = list(axis.codes).index(found.labels[1][0])
    assert found.counts[1, 0] == shaped[tuple(at)]
    with pytest.raises(Mistakes, match="'HEIGHT'; use one of"):
        cross_table(tmp_path / "r", cube.id, ["HEIGHT"])


def test_noise_may_come_from_a_file_or_be_written_out(tmp_path: Path) -> None:
    lookup = build(solve(PTableParameters(5, 2.0, 0)), Order.PLAIN)
    write_ptable(tmp_path / "t.csv", PTableFormat.R, lookup)
    from_file = interval(12, noise_of_ptable_file(tmp_path / "t.csv"))
    named = interval(12, noise_by("cell-key", D=5, V=2.0))
    assert from_file.interval == named.interval
    written = noise_of_law([{0: 1.0}, {-1: 0.25, 0: 0.5, 1: 0.25}])
    assert interval(0, written).most_likely == (0, 0)
    assert noise_of_law(truncated_laplace(1, 3)).counts.is_additive


def test_cells_differences_ratios_and_totals() -> None:
    cell = interval(12, LAPLACE, prior=Geometric(10))
    assert cell.interval.low <= 12 <= cell.interval.high
    assert "Published 12" in cell.sentence
    gap = difference(30, 12, LAPLACE)
    assert gap.interval.low < 18 < gap.interval.high
    assert ratio(30, 12, LAPLACE).low < 2.5 < ratio(30, 12, LAPLACE).high
    assert ratio(3, 0, LAPLACE).summary()["high"] is None
    whole = total(TABLE, LAPLACE)
    assert whole.interval.low < np.sum(TABLE) < whole.interval.high
    helped = total(TABLE, LAPLACE, published=330)
    assert helped.interval.high - helped.interval.low < whole.interval.high - whole.interval.low
    assert "corrected" in helped.method
    twice = total([12, 30], LAPLACE, weights=[2, 1])
    assert twice.published == 54
    assert twice.interval.high - twice.interval.low > total([12, 30], LAPLACE).interval.high - 42


def test_a_posterior_of_a_total_is_only_reported_with_a_prior() -> None:
    clipped = noise_by("laplace", negatives="zero", epsilon=0.5, bound=7)
    cells = np.random.default_rng(3).poisson(6, 60)
    bare, given = total(cells, clipped), total(cells, clipped, prior=Geometric(6))
    assert (bare.prior, bare.posterior_mean, bare.credible) == (None, None, None)
    assert given.interval == bare.interval
    assert given.credible is not None
    assert "given the prior" in given.sentence
    assert "prior to be true" in given.assumption


def test_every_result_states_what_it_assumes_and_what_was_checked() -> None:
    clipped = noise_by("laplace", negatives="zero", epsilon=0.5, bound=7)
    results: dict[str, list[Any]] = {
        "need no prior": [interval(12, LAPLACE), difference(30, 12, LAPLACE), total(TABLE, LAPLACE)],
        "worst coverage found for a nominal 95 %: 94 %": [
            total(TABLE, clipped),
            difference(3, 0, clipped),
            total(TABLE, LAPLACE, published=330),
        ],
        "prior of both counts": [ratio(30, 12, LAPLACE)],
        "the p-value is exact": [
            binomial(41, 80, 0.5, LAPLACE),
            independence(TABLE, LAPLACE, known_margins=([153, 104, 70], [105, 135, 87]), simulations=19),
        ],
        "size found for a nominal 5 %": [independence(TABLE, LAPLACE, simulations=19)],
        "by the chi-square law, which is rough": [independence(TABLE, LAPLACE, simulations=0)],
        "rough where expected counts are below 5": [loglinear(TABLE, ["A", "B"], LAPLACE)],
    }
    for said, found in results.items():
        for one in found:
            assert said in one.assumption
            assert "the stated noise" in one.summary()["assumption"]


def test_a_binomial_interval_states_its_exact_coverage() -> None:
    found = binomial(41, 80, 0.5, LAPLACE)
    law, covered = LAPLACE.counts, 0.0
    interval = cache(lambda x: BinomialFit(80, x, law).interval(0.95))
    for a in range(81):
        weight = math.comb(80, a) * found.estimate**a * (1 - found.estimate) ** (80 - a)
        for x, p in zip(law.row(a).values.tolist(), law.row(a).p.tolist(), strict=True):
            if weight * p > 1e-10:
                low, high = interval(x)
                covered += weight * p * (low <= found.estimate <= high)
    assert found.coverage == pytest.approx(covered, abs=1e-6)
    assert 0.9 < found.coverage < 1


def test_known_margins_and_a_public_total_change_the_test() -> None:
    table = np.array([[9, 2, 1], [1, 8, 2], [2, 1, 9]])
    noise = noise_by("laplace", epsilon=1, bound=5)
    rows, columns = [11, 12, 12], [12, 11, 12]
    plain = independence(table, noise, simulations=199)
    whole = independence(table, noise, public_total=35, simulations=199)
    known = independence(table, noise, known_margins=(rows, columns), simulations=199)
    assert [one.test for one in (plain, whole, known)] == [
        "likelihood ratio",
        "likelihood ratio, total known",
        "score, margins known",
    ]
    assert max(whole.p_value, known.p_value) <= 0.01
    assert known.simulations == 199
    assert independence(table, noise, known_margins=(rows, columns), simulations=199) == known


def test_without_simulations_the_p_value_is_that_of_the_chi_square_law() -> None:
    found = independence(TABLE, LAPLACE, simulations=0)
    assert found.p_value == found.asymptotic_p_value == pytest.approx(chi2.sf(found.statistic, 4))
    simulated = independence(TABLE, LAPLACE)
    assert simulated.simulations == 999
    assert simulated.asymptotic_p_value == found.p_value
    assert simulated.p_value == pytest.approx(found.p_value, abs=0.1)
    assert round(simulated.p_value * 1000) == pytest.approx(simulated.p_value * 1000)


def test_a_binomial_probability() -> None:
    found = binomial(41, 80, 0.5, LAPLACE, against=0.7)
    assert found.p_value > 0.8
    assert 0.03 < found.size_at_5_percent < 0.07
    assert found.power is not None
    assert found.power > 0.9
    assert binomial(20, 80, 0.5, LAPLACE).p_value < 0.01


def test_log_linear_models_of_long_and_square_tables() -> None:
    square = loglinear(TABLE, ["A", "B"], LAPLACE)
    assert square.deviance == pytest.approx(independence(TABLE, LAPLACE).statistic, abs=1e-5)
    columns: dict[str, list[object]] = {
        "SEX": ["_T", *(["m"] * 3), *(["f"] * 3)],
        "AGE": ["_T", "1", "2", "3", "1", "2", "3"],
        "value": [300, 40, 50, 60, 45, 48, 61],
    }
    found = loglinear(long_table(columns, ["SEX", "AGE"]), ["SEX*AGE"], LAPLACE)
    assert found.df == 0
    assert [one.name for one in found.effects][:2] == ["intercept", "SEX=f"]
    assert found.effects[1].standard_error > found.effects[1].naive_standard_error


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: independence([[1.5, 2], [3, 4]], LAPLACE), r"table: 1\.5; give published counts"),
        (lambda: independence([[1, 2, 3]], LAPLACE), "1 x 3; give at least two rows"),
        (lambda: independence([1, 2, 3], LAPLACE), "1 axes"),
        (lambda: independence([[1, 2], [3, -9]], LAPLACE), "published count: -9"),
        (lambda: independence([["a", 2], ["b", 4]], LAPLACE), "without labels"),
        (lambda: independence([[1, 2], [3]], LAPLACE), "rows of different length"),
        (lambda: independence(pd.DataFrame([[1, None], [2, 3]]), LAPLACE), "fill it with 0"),
        (lambda: independence(TABLE, LAPLACE, simulations=5), "simulations: 5; give 19 to 100000"),
        (lambda: independence(TABLE, LAPLACE, public_total=0), "public total: 0; give the number of records"),
        (lambda: independence(TABLE, LAPLACE, public_total=2**63), "from 1 to 9000000000 for such a"),
        (
            lambda: independence(TABLE, LAPLACE, public_total=9, known_margins=([9], [9])),
            "both; give the margins",
        ),
        (
            lambda: independence(TABLE, LAPLACE, known_margins=([153, 104], [105, 152])),
            "2 rows and 2 columns; give 3 and 3",
        ),
        (
            lambda: independence(TABLE, LAPLACE, known_margins=([1, 2, 3], [1, 2, 4])),
            "rows add up to 6, columns to 7",
        ),
        (
            lambda: independence(TABLE, LAPLACE, known_margins=([7, 0, 0], [1, 2, 4])),
            "fewer than two totals above 0",
        ),
        (
            lambda: independence(TABLE, LAPLACE, known_margins=([40, 140, 147], [105, 135, 87])),
            "a published count of 52 where at most 40",
        ),
        (lambda: independence_of_many(TABLE, LAPLACE), "2 axes"),
        (lambda: interval([1, 2], LAPLACE), "2 values; give one"),
        (lambda: interval(True, LAPLACE), "true or false"),
        (lambda: noise_by("laplce", epsilon=1), "kind: laplce; choose from laplace"),
        (lambda: noise_by("laplace", epsilon=1), "bound: missing for laplace noise"),
        (lambda: noise_by("laplace", eps=1, bound=2), "parameter: eps; choose from epsilon"),
        (lambda: noise_by("laplace", negatives="drop", epsilon=1, bound=2), "negatives: drop"),
        (lambda: noise_by("cell-key", negatives="zero", D=5, V=2.0), "a p-table rules them"),
        (lambda: loglinear(TABLE, [], LAPLACE), "no terms"),
        (lambda: loglinear(TABLE, ["A"], LAPLACE, axes=["X"]), "name each of the 2 axes"),
        (lambda: long_table({"A": ["x"]}, ["A"]), "column: value"),
        (lambda: long_table({"A": ["x", "x"], "value": [1, 2]}, ["A"]), "listed twice"),
        (lambda: binomial(41, 80, 1.5, LAPLACE), r"p0: 1\.5"),
    ],
)
def test_mistakes_are_told_in_a_line(call: Any, said: str) -> None:
    with pytest.raises(Mistakes, match=said) as told:
        call()
    assert len(str(told.value).splitlines()) == 1


def test_the_public_names_are_these() -> None:
    assert set(inference.__all__) <= set(dir(inference))
    assert {"independence", "binomial", "interval", "difference", "ratio", "total", "loglinear"} <= set(
        inference.__all__
    )
    assert isinstance(LAPLACE, KnownLaw)
