"""A synthetic census protected by swapping, by the cell key method and by both; it makes no claims.

Everything is made in a temporary folder with a fixed secret, for the records are nobody's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from discreet.audit.case import open_case, variants
from discreet.audit.differencing import ExactNoise
from discreet.audit.differencing_areas import Crossing, difference_areas
from discreet.audit.disclosure import DisclosureRule, judge
from discreet.audit.evidence import Published, Truth
from discreet.audit.utility import utility
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import PublishedLaw
from discreet.maths.utility import Measure
from discreet.pipeline.protect import protect
from discreet.pipeline.swap import write_swap
from discreet.programme.programme import load_programme
from discreet.release.reader import open_release

SECRET = bytes(range(32))
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ALLOWED = ("no donor", "excluded")  # why a household at risk may stay
CUBES = {"a": '["GEO.H", "SEX", "AGE.M"]', "b": '["GEO.H", "SEX", "COC.L"]'}
SWAP = """
[swap]
k = 3
risk = ["AGE.M", "SEX", "COC.L"]
similar = [["HHSIZE", "HHTYPE"], ["HHSIZE"], [{ composition = [] }]]
rate = 0.01
carry = ["grid_x", "grid_y", "grid", "loc"]
exclude = 'HAR in ("2", "3")'
"""


@dataclass(frozen=True)
class Result:
    """One way of protection."""

    true_ones: float  # share of published ones that were ones before anything was done
    l1: float  # mean absolute error of a cell with somebody in it


@dataclass(frozen=True)
class Combined:
    """All ways at one variance."""

    V: float
    results: Mapping[str, Result]
    swapped: float  # share of households
    same_persons: float  # of apparent uniques at the finest level after swapping
    left_though_donor: int


@dataclass(frozen=True)
class Grid:
    """Differences between grid squares and municipalities."""

    differences: int
    right: float  # expected to be published as they are


def combined(census: Path, V: float) -> Combined:
    """Protect the tables of municipalities with both methods, and take each alone from the same case."""
    path = census / f"combined-{V:g}.toml"
    path.write_text(_declared((census / "programme.toml").read_text(encoding="utf-8"), V), encoding="utf-8")
    programme = load_programme(path)
    release = census.parent / f"release-{V:g}"
    protect(programme, SECRET, release, release.with_suffix(".json"), clock=lambda: NOON)
    case = open_case(programme, SECRET, open_release(release))
    ways = {**dict(variants(case, "GEO", {})), "both": case.published}
    judged = {
        name: Result(*_judged(ways[name], case.truth))
        for name in ("none", "swapping only", "noise only", "both")
    }
    swapped = write_swap(
        programme, SECRET, release.with_suffix(".swapped"), release.with_suffix(".private")
    ).figures
    left = sum(one.households for one in swapped.unswapped if not one.why.startswith(ALLOWED))
    finest = swapped.levels[-1]
    return Combined(V, judged, swapped.swapped / swapped.households, finest.chance_same or 0.0, left)


def _judged(published: Published, truth: Truth) -> tuple[float, float]:
    ones = judge(published, truth, DisclosureRule(areas=("GEO",))).total.ones.share_true
    found = utility(published, truth).total.total.occupied
    return ones or 0.0, found.mean(Measure.L1) or 0.0


def _declared(programme: str, V: float) -> str:
    """The census's own programme with two tables of municipalities, both methods and no others."""
    head, _, rest = programme.partition("[standard]")
    zeros = rest[rest.index("[[structural") :].partition("[noise]")[0]
    cubes = "".join(f'[[cubes]]\nid = "{name}"\naxes = {axes}\n' for name, axes in CUBES.items())
    return f'{head}{zeros}{cubes}{SWAP}\n[noise]\nkind = "cell-key"\nV = {V}\nD = 5\n'


def grid_differences(census: Path, V: float, threshold: int = 50) -> Grid:
    """Search the areas that grid squares and municipalities give away, before and after noise."""
    table = pq.read_table(census / "persons.parquet", columns=["grid", "lau"])
    columns = [
        np.unique(np.array(table[name].to_pylist(), dtype=str), return_inverse=True)
        for name in ("grid", "lau")
    ]
    pieces, counts = np.unique(np.stack([inverse for _, inverse in columns]), axis=1, return_counts=True)
    codes = (tuple(columns[0][0].tolist()), tuple(columns[1][0].tolist()))
    crossing = Crossing(("grid", "lau"), codes, pieces[0], pieces[1], counts.astype(np.int64))
    change = PublishedLaw(PTableLaw(solve(PTableParameters(5, V))), keeps_zeros=True)
    found = difference_areas(crossing, threshold, noise=ExactNoise(change, change))
    return Grid(found.found, found.after.expected if found.after else 0.0)
