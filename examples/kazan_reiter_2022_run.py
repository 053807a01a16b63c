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
from numpy.typing import NDArray

from discreet.audit.bayes_measurements import (
    AdversaryFinding,
    TargetCounts,
    Targets,
    attack_measurements,
    log_odds,
    measured_targets,
)
from discreet.audit.case import open_case
from discreet.hierarchy.mechanism import HierarchicalMechanism
from discreet.io.register import Register
from discreet.maths.attacks.bayes_hierarchy import Chain, Hierarchy, decisions
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
class Beliefs:
    """Published triples in the proportions of the adversary's prior, and what was true behind each.

    A person who is there, with x2 such persons in the county, and the same noise without that person (x2 - 1) have
    equal weight for every x2: X1 is 0 or 1 with equal probability, and X2 given X1 is uniform from X1 on.
    """

    triples: NDArray[np.int64]  # (x1, x2, y1; entry)
    there: NDArray[np.bool_]
    larger: NDArray[np.int64]
    weight: NDArray[np.float64]

    def near(self, x1: int, x2: int, y1: int, reach: int) -> Beliefs:
        """Those published as x1 and x2, with the others' sum at most ``reach`` from y1."""
        apart = np.abs(self.triples - np.array([[x1], [x2], [y1]]))
        return self.some((apart[0] == 0) & (apart[1] == 0) & (apart[2] <= reach))

    def some(self, chosen: NDArray[np.bool_]) -> Beliefs:
        """A part of them."""
        return Beliefs(self.triples[:, chosen], self.there[chosen], self.larger[chosen], self.weight[chosen])

    def share(self, true: NDArray[np.bool_]) -> tuple[float, float]:
        """The weighted share of those of whom something is true, and its standard error."""
        whole = float(self.weight.sum())
        share = float(self.weight @ true) / whole
        return share, float(np.sqrt((self.weight**2) @ (true - share) ** 2)) / whole


@dataclass(frozen=True, eq=False)
class Attacked:
    """What the adversary finds in one release, and the targets with their published counts."""

    finding: AdversaryFinding
    targets: TargetCounts

    @property
    def place(self) -> Hierarchy:
        """The noise of the release as the adversary knows it."""
        return Hierarchy(self.targets.lower, self.targets.upper, DISTRICTS - 1)

    def of(self, x2: int) -> TargetCounts:
        """The targets who are the only such person of the district, with x2 such persons in the county."""
        return self._some((self.targets.larger == x2) & (self.targets.true == 1))

    def published(self, x1: int, x2: int, y1: int) -> TargetCounts:
        """The targets, alone in their district, of whom these counts are published."""
        one = self.targets
        return self._some((one.true == 1) & (one.x1 == x1) & (one.x2 == x2) & (one.y1 == y1))

    def _some(self, chosen: NDArray[np.bool_]) -> TargetCounts:
        return replace(self.targets, **{name: getattr(self.targets, name)[chosen] for name in COUNTS})

    def decided(self, x2: int, chain: Chain = Chain.EXACT) -> Share:
        """The share of them who are decided rightly, by a chain."""
        return self.changes(x2, chain)[2]

    def changes(self, x2: int, chain: Chain) -> tuple[Share, Share, Share]:
        """Shares of targets: only the hierarchy decides rightly, only the own count does, and the hierarchy does."""
        found = self.of(x2)
        right, own = decisions(log_odds(found, chain=chain)), found.x1 >= 1
        some = (right * ~own, (1 - right) * own, right)
        return tuple(Share(float(one.mean()), len(found)) for one in some)  # type: ignore[return-value]

    def beliefs(self, most: int) -> Beliefs:
        """All triples of persons with 1 to ``most`` such persons in the county, and without them."""
        parts: list[Beliefs] = []
        for x2 in range(1, most + 1):
            found = self.of(x2)
            triples = np.stack([found.x1, found.x2, found.y1])
            for less in (0, 1):
                size = len(found)
                parts.append(
                    Beliefs(
                        triples - np.array([[less], [less], [0]]),
                        np.full(size, less == 0),
                        np.full(size, x2 - less),
                        np.full(size, 1 / size),
                    )
                )
        return Beliefs(
            np.concatenate([one.triples for one in parts], axis=1),
            np.concatenate([one.there for one in parts]),
            np.concatenate([one.larger for one in parts]),
            np.concatenate([one.weight for one in parts]),
        )


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
    """In every cell of county k, ``larger[k]`` persons: one in each of so many districts, all further ones anywhere."""
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
        further = random.integers(0, DISTRICTS, (CELLS, max(persons - DISTRICTS, 0)))
        order = np.concatenate([order, further], axis=1)
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
