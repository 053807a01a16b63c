"""Tests of independence whose p-values come from simulated tables, also with a public total or known margins.

The chi-square law of the likelihood ratio is wrong for small counts (a nominal 5 % is 10 % under cell key noise at a
mean count of 3). Tables are therefore drawn under independence, perturbed by the same law, and tested in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.lazy import lazily
from discreet.maths.inference.independence import (
    IndependenceTests,
    Integers,
    Judged,
    PublishedMoments,
    fitted_products,
    independence_tests,
    judged_margins,
    judged_part,
)
from discreet.maths.inference.likelihood import tilted_sums
from discreet.maths.noise.law import Floats
from discreet.maths.noise.publishing import PublishedLaw, packed

if TYPE_CHECKING:
    from scipy import stats
else:
    stats = lazily("scipy.stats")

TIE = 1e-7  # statistics closer than this are equal
MOST_TABLES, LEAST_TABLES = 999, 99
MOST_CELLS = 10**6  # of all simulated tables, unless LEAST_TABLES have more
SPARSE = 2.0  # mean count below which simulation from fitted means rejects too often
SMOOTHED = 0.5  # records added to each fitted margin: a margin that is fitted as 0 is rarely 0
LEAST_INFORMATION = 1e-6  # of a cell, as a share of its expected count


@dataclass(frozen=True)
class KnownMargins:
    """The exact totals of rows and columns, published without noise or known from elsewhere."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        if min((*self.rows, *self.columns), default=-1) < 0:
            raise mistake("", "known margins", "a negative or missing total", "give whole numbers, 0 or more")
        if sum(self.rows) != sum(self.columns):
            value = f"rows add up to {sum(self.rows)}, columns to {sum(self.columns)}"
            raise mistake("", "known margins", value, "give exact totals of the same records")
        if min(sum(total > 0 for total in totals) for totals in (self.rows, self.columns)) < 2:
            remedy = "give at least two rows and two columns that are not empty"
            raise mistake("", "known margins", "fewer than two totals above 0", remedy)

    @property
    def without_empty(self) -> KnownMargins:
        """The totals above 0."""
        rows, columns = (tuple(filter(None, totals)) for totals in (self.rows, self.columns))
        return KnownMargins(rows, columns)

    @property
    def total(self) -> int:
        """The number of records."""
        return sum(self.rows)

    def tables(self, number: int, rng: np.random.Generator) -> Integers:
        """Tables with these margins by their probability under independence."""
        drawn = stats.random_table(np.array(self.rows), np.array(self.columns)).rvs(number, random_state=rng)
        return np.asarray(drawn, dtype=np.int64).reshape(number, len(self.rows), len(self.columns))


Known = KnownMargins | int | None  # margins, the total of all cells, or nothing


@dataclass(frozen=True, eq=False)
class SimulatedTest:
    """A statistic, its p-value and that of the chi-square law."""

    statistic: float
    p_value: float
    asymptotic_p_value: float


@dataclass(frozen=True, eq=False)
class SimulatedTests:
    """The tests of one table; ``score`` only where margins are known."""

    tests: IndependenceTests
    likelihood_ratio: SimulatedTest
    chi_square: SimulatedTest
    score: SimulatedTest | None
    judged: Judged  # what of the table was tested: not its empty rows and columns
    tables: int  # simulated; 0: p-values are those of the chi-square law


def default_tables(cells: int) -> int:
    """999 simulated tables, fewer where a table is large."""
    return int(np.clip(MOST_CELLS // cells, LEAST_TABLES, MOST_TABLES))


def simulated_tests(
    table: Integers,
    noise: PublishedLaw,
    known: Known,
    tables: int,
    rng: np.random.Generator,
    structural: NDArray[np.bool_] | None = None,
) -> SimulatedTests:
    """Test one table; p = (1 + simulated statistics at least as large) / (1 + tables) (Davison & Hinkley 1997, 4.2).

    Nothing known: true counts are Poisson with the fitted means. Total N known: multinomial with the fitted shares
    (both: parametric bootstrap; below a mean of 2 the larger p-value of simulation and chi-square law). Margins known:
    all tables with these margins by their probability under independence (Patefield 1981), so that no parameter is
    estimated and the p-value is exact. Empty rows and columns are left out, and ``structural`` zeros (see ``Judged``).
    """
    if isinstance(known, KnownMargins):
        if structural is not None and structural.any():
            value = "with cells that must be empty"
            raise mistake("", "known margins", value, "leave the margins out, or those cells")
        _checked_margins(table, noise, known)
        part = judged_margins(known.rows, known.columns)
        known = known.without_empty
    else:
        part = judged_part(table, noise, structural)
    table = np.where(part.possible, part.part(table), 0)
    found = independence_tests(table[None], noise, part.possible)
    if not tables:
        own = None if not isinstance(known, KnownMargins) else score_statistics(table[None], noise, known)
        score = None if own is None else _by_law(float(own[0]), part.df)
        pair = [
            _by_law(float(one.statistic[0]), one.df) for one in (found.likelihood_ratio, found.chi_square)
        ]
        return SimulatedTests(found, pair[0], pair[1], score, part, 0)
    drawn = _draws(table, noise, known, tables, rng, part.possible)
    if isinstance(known, KnownMargins):
        statistics = score_statistics(np.concatenate([table[None], drawn]), noise, known)
        score = _ranked(float(statistics[0]), statistics[1:], part.df)
    else:
        score = None
    null = independence_tests(drawn, noise, part.possible)
    pair = [
        _ranked(float(one.statistic[0]), of_null.statistic, one.df)
        for one, of_null in (
            (found.likelihood_ratio, null.likelihood_ratio),
            (found.chi_square, null.chi_square),
        )
    ]
    if score is None and found.fitted[0][part.possible].mean() < SPARSE:
        pair = [replace(one, p_value=max(one.p_value, one.asymptotic_p_value)) for one in pair]
    return SimulatedTests(found, pair[0], pair[1], score, part, tables)


def _by_law(own: float, df: int) -> SimulatedTest:
    p_value = float(stats.chi2.sf(own, df))
    return SimulatedTest(own, p_value, p_value)


def _ranked(own: float, null: Floats, df: int) -> SimulatedTest:
    p_value = float((1 + (null >= own - TIE).sum()) / (1 + len(null)))
    return SimulatedTest(own, p_value, float(stats.chi2.sf(own, df)))


def _draws(
    table: Integers,
    noise: PublishedLaw,
    known: Known,
    tables: int,
    rng: np.random.Generator,
    possible: NDArray[np.bool_],
) -> Integers:
    """Published tables (table, row, column) under independence."""
    shape = (tables, *table.shape)
    if isinstance(known, KnownMargins):
        true = known.tables(tables, rng)
    else:
        mu = smoothed(fitted_products(table[None], noise, known, possible))[0] * possible
        if known is None:
            true = rng.poisson(mu, size=shape)
        else:
            true = rng.multinomial(known, (mu / mu.sum()).ravel(), size=tables).reshape(shape)
    return np.where(possible, drawn_published(noise, true.astype(np.int64), rng), 0)


def smoothed(mu: Floats) -> Floats:
    """Products of margins with half a record more in each, and the same total."""
    rows, columns = mu.sum(axis=2) + SMOOTHED, mu.sum(axis=1) + SMOOTHED
    scale = mu.sum(axis=(1, 2)) / (rows.sum(axis=1) * columns.sum(axis=1))
    found: Floats = rows[:, :, None] * columns[:, None, :] * scale[:, None, None]
    return found


def _checked_margins(table: Integers, noise: PublishedLaw, known: KnownMargins) -> None:
    if table.shape != (len(known.rows), len(known.columns)):
        value = f"{len(known.rows)} rows and {len(known.columns)} columns"
        raise mistake(
            "", "known margins", value, f"give {table.shape[0]} and {table.shape[1]}, as the table has"
        )
    most = np.minimum.outer(known.rows, known.columns)
    least = {int(x): noise.column(int(x)).first for x in np.unique(table)}
    for x, largest in zip(table.ravel().tolist(), most.ravel().tolist(), strict=True):
        if least[x] > largest:
            value = f"a published count of {x} where at most {largest} are possible"
            raise mistake(
                "", "known margins", value, "check the margins, their order, and the law of the noise"
            )


def drawn_published(noise: PublishedLaw, true: Integers, rng: np.random.Generator) -> Integers:
    """What would be published for true counts, each cell with its own noise."""
    found = np.empty(true.shape, dtype=np.int64)
    for count in np.unique(true).tolist():
        row, here = noise.row(count), true == count
        found[here] = rng.choice(row.values, size=int(here.sum()), p=row.p / row.p.sum())
    return found


def score_statistics(tables: Integers, noise: PublishedLaw, known: KnownMargins) -> Floats:
    """The largest 2 s'd - d'I d over departures d of log mu that leave the margins unchanged, of each table.

    mu_ij = r_i c_j / N is known; s = E[a | x] - mu is the score of a cell under independence, I = (mu dE x/dmu)^2 /
    Var x its information, and sum_j mu_ij d_ij = sum_i mu_ij d_ij = 0. Rows and columns with a total of 0 are left out.
    """
    rows, columns = (np.flatnonzero(totals) for totals in (known.rows, known.columns))
    tables = tables[:, rows[:, None], columns[None, :]]
    mu = np.multiply.outer(np.array(known.rows)[rows], np.array(known.columns)[columns]) / known.total
    packs = packed(noise, tables)
    theta = np.broadcast_to(np.log(mu), tables.shape)
    score = (tilted_sums(theta, packs.indices(tables), packs)[1] - mu).reshape(len(tables), -1)
    flat = mu.ravel()
    _, variance, slope = PublishedMoments(noise)(flat)
    information = (flat * slope) ** 2 / variance + LEAST_INFORMATION * flat
    fixed = flat[:, None] * _members(*mu.shape)  # (cell, margin)
    weighted = fixed / information[:, None]
    moved = score @ weighted
    solved = np.linalg.solve(fixed.T @ weighted, moved.T).T
    found: Floats = np.maximum(0.0, (score**2 / information).sum(axis=1) - (moved * solved).sum(axis=1))
    return found


def _members(rows: int, columns: int) -> NDArray[np.bool_]:
    """Which cells are in each row, and in each column but the last."""
    cell = np.arange(rows * columns)[:, None]
    return np.concatenate(
        [cell // columns == np.arange(rows)[None], cell % columns == np.arange(columns - 1)[None]], axis=1
    )
