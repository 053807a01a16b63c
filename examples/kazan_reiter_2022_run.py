"""The adversary of Kazan & Reiter (2022) on releases that are really made; it makes no claims.

Counties of 28 districts with the paper's histogram of 864 cells are written as records, protected by hierarchical
noise with the budgets of the paper, and the published measurements are attacked. In county after county the cells have
one person each, or one person and some others elsewhere in the county: every person is a target, so that one release
has as many independent draws as the paper simulated. Everything is made in a temporary folder with a fixed secret and
noise, for the records are invented.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.audit.bayes_measurements import (
    AdversaryFinding,
    TargetCounts,
    Targets,
    attack_measurements,
    measured_targets,
)
from discreet.audit.case import open_case
from discreet.hierarchy.mechanism import HierarchicalMechanism
from discreet.io.register import Register
from discreet.maths.attacks.bayes_hierarchy import Chain, Hierarchy
from discreet.pipeline.protect import protect
from discreet.programme.programme import load_programme
from discreet.release.reader import open_release

SECRET = bytes(range(32))
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DISTRICTS = 28
VARIABLES = {"HHGQ": 8, "VOTINGAGE": 2, "HISPANIC": 6, "RACE": 9}
CELLS = 864
EVERY = 10**7
COUNTS = ("true", "larger", "groups", "x1", "x2", "y1")

PROGRAMME = """
[population]
persons = "persons.parquet"
person_id = "person_id"
geography = ["geo"]
[variables.GEO]
codelist = "geo.csv"
of = "person"
breakdowns = {{ COUNTY = 1, DISTRICT = 2 }}
{variables}
[[cubes]]
id = "counties"
axes = ["GEO.COUNTY"]
[noise]
kind = "hierarchical"
geography = "GEO"
rho = "{rho}"
neighbours = "add-remove"
snapshot = "1940"
outputs = ["counts", "measurements"]
[noise.strategy]
histogram = [{names}]
levels = {{ COUNTY = "{county}", DISTRICT = "{district}" }}
[noise.strategy.queries]
COUNTY = {{ detailed = "1" }}
DISTRICT = {{ detailed = "1" }}
"""


@dataclass(frozen=True)
class Share:
    """A share of some targets."""

    share: float
    targets: int

    @property
    def error(self) -> float:
        """Its standard error, where targets are independent; one of none or all counts as one of half a target."""
        p = min(max(self.share, 0.5 / self.targets), 1 - 0.5 / self.targets)
        return math.sqrt(p * (1 - p) / self.targets)


@dataclass(frozen=True, eq=False)
class Attacked:
    """What the adversary finds in one release, and the targets with their published counts."""

    finding: AdversaryFinding
    targets: TargetCounts

    def of(self, x2: int) -> TargetCounts:
        """The targets who are the only such person of the district, with x2 such persons in the county."""
        here = (self.targets.larger == x2) & (self.targets.true == 1)
        arrays = {name: getattr(self.targets, name)[here] for name in COUNTS}
        return replace(self.targets, **arrays)

    def decided(self, x2: int, chain: Chain = Chain.EXACT) -> Share:
        """The share of them who are decided rightly, by a chain."""
        return self.changes(x2, chain)[2]

    def changes(self, x2: int, chain: Chain) -> tuple[Share, Share, Share]:
        """Shares of targets: only the hierarchy decides rightly, only the own count does, and the hierarchy does."""
        found = self.of(x2)
        place = Hierarchy(found.lower, found.upper, DISTRICTS - 1)
        triples = np.stack([found.x1, found.x2, found.y1])
        different, times = np.unique(triples, axis=1, return_counts=True)
        right = np.array([place.posterior(int(a), int(b), int(c), chain) > 0.5 for a, b, c in different.T])
        own = different[0] >= 1
        some = (right & ~own, own & ~right, right)
        return tuple(Share(float(times @ one) / len(found), len(found)) for one in some)  # type: ignore[return-value]


def run(rho_1: Fraction, rho_2: Fraction, counties: Mapping[int, int]) -> Attacked:
    """Make and attack a release; ``counties``: x2, such persons in the county -> how many counties."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        _records(folder, [x2 for x2, times in counties.items() for _ in range(times)])
        whole = rho_1 + rho_2
        text = PROGRAMME.format(
            variables="\n".join(
                f'[variables.{name}]\ncodelist = "{name.lower()}.csv"\nof = "person"' for name in VARIABLES
            ),
            names=", ".join(f'"{name}"' for name in VARIABLES),
            rho=whole,
            county=rho_2 / whole,
            district=rho_1 / whole,
        )
        (folder / "programme.toml").write_text(text, encoding="utf-8")
        programme = load_programme(folder / "programme.toml")
        register = Register.of(folder / "register", SECRET)
        register.bound("1940", {}, SECRET)  # the same noise at every run
        protect(
            programme,
            SECRET,
            folder / "release",
            folder / "private.json",
            clock=lambda: NOON,
            register=register,
        )
        release = open_release(folder / "release")
        case = open_case(programme, SECRET, release)
        chosen, hierarchy = case.mechanism, case.published.hierarchy
        if not isinstance(chosen, HierarchicalMechanism) or hierarchy is None:
            raise TypeError("the release is not hierarchical")
        rule = Targets(most=EVERY)
        (finding,) = (
            one for one in attack_measurements(case, chosen, hierarchy, rule) if one.level == "DISTRICT"
        )
        (targets,) = (
            one for one in measured_targets(case, chosen, hierarchy, rule) if one.level == "DISTRICT"
        )
        return Attacked(finding, targets)


def _records(folder: Path, larger: Sequence[int]) -> None:
    """In every cell of county k, one person in each of ``larger[k]`` districts."""
    random = np.random.default_rng(1940)
    head = ("code", "parent", "label")
    counties = [f"C{k}" for k in range(len(larger))]
    rows = [(code, "", code) for code in counties]
    rows += [(f"{code}D{d}", code, f"{code}D{d}") for code in counties for d in range(DISTRICTS)]
    _table(folder / "geo.csv", [head, *rows])
    for name, size in VARIABLES.items():
        _table(folder / f"{name.lower()}.csv", [head, *((f"{k}", "", f"{k}") for k in range(size))])
    cell, place = [], []
    for county, persons in enumerate(larger):
        order = np.argsort(random.random((CELLS, DISTRICTS)), axis=1)[:, :persons]
        cell.append(np.repeat(np.arange(CELLS), order.shape[1]))
        place.append(county * DISTRICTS + order.reshape(-1))
    cells, places = np.concatenate(cell), np.concatenate(place)
    codes = np.array([f"{code}D{d}" for code in counties for d in range(DISTRICTS)])
    along = np.unravel_index(cells, tuple(VARIABLES.values()))
    columns = {"person_id": np.arange(len(cells)).astype(str), "geo": codes[places]}
    columns |= {name.lower(): one.astype(str) for name, one in zip(VARIABLES, along, strict=True)}
    pq.write_table(pa.table(columns), folder / "persons.parquet")


def _table(path: Path, rows: Sequence[Sequence[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
