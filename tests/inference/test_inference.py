"""What a data user calls: noise from a release, tables of every kind, results with a sentence and both p-values."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

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
from discreet.maths.inference.intervals import Flat, Geometric
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
    many = independence_of_many(tables, LAPLACE)
    assert [one.statistic for one in many] == pytest.approx(
        [independence(one, LAPLACE).statistic for one in tables]
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
    with pytest.raises(Mistakes, match="choose from"):
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
    assert total(TABLE, LAPLACE, published=330).method == "by the posterior"
    twice = total([12, 30], LAPLACE, weights=[2, 1])
    assert twice.published == 54
    assert twice.interval.high - twice.interval.low > total([12, 30], LAPLACE).interval.high - 42


def test_the_prior_of_many_cells_is_estimated() -> None:
    clipped = noise_by("laplace", negatives="zero", epsilon=0.5, bound=7)
    cells = np.random.default_rng(3).poisson(6, 60)
    assert "estimated from the cells" in total(cells, clipped).prior
    assert "equally probable" in total(cells, clipped, prior=Flat()).prior


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
