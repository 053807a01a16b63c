"""Putting the households of a population together from its tables: places, risks, likeness, exclusions.

It owns the checks that a household is one thing in one place; it exchanges nobody.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.engine.progress import Progress
from discreet.errors import Mistakes, mistake
from discreet.maths.swap_risk import add_members, combine, least_counts, numbered
from discreet.schema.codelist import Breakdown
from discreet.schema.swap_rule import Composition, Profile
from discreet.swap.persons import Rows, Wanted, read_rows, wanted
from discreet.swap.regions import Regions, RegionsSeen
from discreet.swap.result import Excluded, Households
from discreet.swap.tables import DWELLINGS, HOUSEHOLDS, PERSONS, Tables, some_hashes

_DWELLING = "swap/dwelling"


@dataclass(frozen=True, eq=False, repr=False)
class Gathered:
    """The households, and the finest region of each."""

    households: Households
    place: NDArray[np.int32]
    regions: Regions


def gather(tables: Tables, secret: bytes, threads: int, progress: Progress) -> Gathered:
    """Read the tables and put the households together, in the order of the hashes of their ids."""
    seen = RegionsSeen(tables.population.geography)
    of_persons, of_households = wanted(tables)
    with ThreadPoolExecutor(threads) as pool:
        persons = read_rows(tables, of_persons, secret, seen, pool, progress)
        homes = read_rows(tables, of_households, secret, seen, pool, progress) if _two(tables) else None
    for unit, rows in ((PERSONS, persons), (HOUSEHOLDS, homes)):
        if rows is not None and not rows.known.any():
            value = f"no records with a household in {tables.household_id!r}"
            raise mistake(tables.opened[unit].name, "population", value, "give a table that holds some")
    progress.stage("looking for households at risk")
    return _Gathering(tables, persons, of_persons, homes, of_households, secret).gathered(seen)


def _two(tables: Tables) -> bool:
    return HOUSEHOLDS in tables.opened


class _Gathering:
    def __init__(
        self,
        tables: Tables,
        persons: Rows,
        of_persons: Wanted,
        homes: Rows | None,
        of_homes: Wanted,
        secret: bytes,
    ) -> None:
        self._tables, self._secret = tables, secret
        self._persons, self._of_persons = persons, of_persons
        self._homes, self._of_homes = homes, of_homes
        self._ids, self._member = _grouped(persons.hashes, persons.known)
        self._listed = np.ones(len(self._ids), dtype=bool)
        self._row = self._rows_of_homes() if homes is not None else None

    def gathered(self, seen: RegionsSeen) -> Gathered:
        regions, final = seen.all()
        place = self._place(final)
        levels = [regions.columns.index(column) for column in self._tables.rule.levels]
        risk = self._risk(regions, levels, place, final)
        households = Households(
            self._ids,
            self._tables.rule.levels,
            tuple(regions.names[level] for level in levels),
            np.ascontiguousarray(regions.above[levels][:, place]),
            np.bincount(self._member[self._member >= 0], minlength=len(self._ids)).astype(np.int32),
            risk,
            self._coarsest(risk),
            self._excluded(),
            np.stack([self._likeness(profile) for profile in self._tables.rule.similar]),
        )
        return Gathered(households, place, regions)

    def _rows_of_homes(self) -> NDArray[np.int64]:
        """Household -> its row in the table of households, -1 where it is not listed."""
        assert self._homes is not None
        table = self._tables.opened[HOUSEHOLDS].name
        if not self._homes.known.all():
            raise mistake(table, "population.household_id", "some records have no id", "give each its own")
        order = np.argsort(self._homes.hashes)  # in order they are looked up several times faster
        hashes = self._homes.hashes[order]
        at = np.minimum(np.searchsorted(self._ids, hashes), len(self._ids) - 1)
        mine = self._ids[at] == hashes
        rows = np.full(len(self._ids), -1, dtype=np.int64)
        rows[at[mine]] = order[mine]
        if (hashes[1:] == hashes[:-1]).any():
            value = f"ids in {self._tables.household_id!r} stand more than once"
            raise mistake(table, "population.households", value, "give each record its own id")
        self._listed = rows >= 0
        return rows

    def _place(self, final: NDArray[np.int32]) -> NDArray[np.int32]:
        """The finest region of each household, the same in both tables."""
        persons, homes = self._persons, self._homes
        place = np.full(len(self._ids), -1, dtype=np.int32)
        if persons.place is not None:
            place = self._one_for_all(final[persons.place], "population.geography", _IN_TWO_PLACES)
        if homes is not None and homes.place is not None and self._row is not None:
            there = final[homes.place][self._row]
            if persons.place is not None and (there != place)[self._listed].any():
                raise self._mistake("population.geography", *_PLACES_DIFFER)
            place = np.where(self._listed, there, place).astype(np.int32)
        if (place < 0).any():
            raise self._mistake("population.geography", *_NO_PLACE)
        return place

    def _one_for_all(self, values: NDArray[np.int32], key: str, wrong: tuple[str, str]) -> NDArray[np.int32]:
        """The value that all members of a household have."""
        inside = self._member >= 0
        member, values = (self._member, values) if inside.all() else (self._member[inside], values[inside])
        out = np.zeros(len(self._ids), dtype=np.int32)
        out[member] = values
        if (out[member] != values).any():
            raise self._mistake(key, *wrong)
        return out

    def _mistake(self, key: str, value: str, remedy: str) -> Mistakes:
        return mistake(self._tables.opened[PERSONS].name, key, value, remedy)

    def _risk(
        self, regions: Regions, levels: list[int], place: NDArray[np.int32], final: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """(level, household) -> the largest risk of a member; supplied risks decide at the finest level."""
        persons, number = self._persons, len(self._ids)
        risk = np.zeros((len(levels), number))
        if self._tables.rule.risk:
            inside = self._member >= 0
            finest = place[self._member] if persons.place is None else final[persons.place]
            alike, _ = numbered(persons.combination)
            kept = slice(None) if persons.place is not None else inside  # without a place nobody is counted
            least = least_counts(finest[kept], regions.above[levels], alike[kept], self._member[kept], number)
            np.divide(1.0, least, out=risk)
        own = self._own_risk()
        if own is not None:
            risk[-1] = own
        return risk

    def _own_risk(self) -> NDArray[np.float64] | None:
        persons, homes = self._persons, self._homes
        if persons.risk is not None:
            own = np.zeros(len(self._ids))
            inside = self._member >= 0
            np.maximum.at(own, self._member[inside], persons.risk[inside])
            return own
        if homes is not None and homes.risk is not None and self._row is not None:
            return np.where(self._listed, homes.risk[self._row], 0.0)
        return None

    def _coarsest(self, risk: NDArray[np.float64]) -> NDArray[np.int8]:
        """The coarsest level at which a household is at risk: fewer than k alike, a risk above 1/k."""
        at_risk = risk * self._tables.rule.k > 1 + 1e-9
        return np.where(at_risk.any(axis=0), at_risk.argmax(axis=0), -1).astype(np.int8)

    def _excluded(self) -> NDArray[np.uint8]:
        excluded = np.zeros(len(self._ids), dtype=np.uint8)
        excluded[self._shared_dwellings()] = Excluded.SHARED_DWELLING
        own = self._own_risk()
        if self._tables.rule.exclude_zero_risk and own is not None:
            excluded[own == 0] = Excluded.ZERO_RISK
        excluded[self._by_rule()] = Excluded.RULE
        excluded[~self._listed] = Excluded.NOT_LISTED
        return excluded

    def _by_rule(self) -> NDArray[np.bool_]:
        persons, homes = self._persons, self._homes
        marked = np.zeros(len(self._ids), dtype=bool)
        if persons.excluded is not None:
            marked[self._member[persons.excluded & (self._member >= 0)]] = True
        if homes is not None and homes.excluded is not None and self._row is not None:
            marked |= homes.excluded[self._row] & self._listed
        return marked

    def _shared_dwellings(self) -> NDArray[np.bool_]:
        """Households that share their dwelling, where dwellings have places that must follow."""
        tables, shared = self._tables, np.zeros(len(self._ids), dtype=bool)
        dwelling = tables.population.ids.get(DWELLINGS, "")
        exchanged = {*tables.population.geography, *tables.rule.carry}
        held = DWELLINGS in tables.opened and exchanged & set(tables.opened[DWELLINGS].schema.names)
        if not held or self._row is None or not tables.has(HOUSEHOLDS, dwelling):
            return shared
        records = tables.opened[HOUSEHOLDS]
        read = [
            some_hashes(batch.column(dwelling), self._secret, _DWELLING, dwelling, records.name)
            for batch in records.batches([dwelling], [])
        ]
        hashes, known = (np.concatenate(part) for part in zip(*read, strict=True))
        _, group, size = np.unique(hashes, return_inverse=True, return_counts=True)
        crowded = (size[group] > 1) & known
        shared[:] = crowded[self._row] & self._listed
        return shared

    def _likeness(self, profile: Profile) -> NDArray[np.int32]:
        """Number the values of a profile: households with equal ones are alike."""
        words = np.zeros(len(self._ids), dtype=np.uint64)
        for part in profile:
            combine(words, self._composition(part) if isinstance(part, Composition) else self._property(part))
        return numbered(words)[0]

    def _composition(self, part: Composition) -> NDArray[np.uint64]:
        sums = np.zeros(len(self._ids), dtype=np.uint64)
        add_members(sums, self._member, self._persons.members[self._of_persons.compositions.index(part)])
        return sums

    def _property(self, axis: Breakdown) -> NDArray[np.int32]:
        names = [held.full_name for held in self._of_persons.alike]
        if axis.full_name in names:
            values = self._persons.alike[names.index(axis.full_name)].astype(np.int32)
            remedy = f'compare them by {{ composition = ["{axis.full_name}"] }}'
            wrong = f"the members of some households differ in {axis.full_name}", remedy
            return self._one_for_all(values, "swap.similar", wrong)
        assert self._homes is not None
        assert self._row is not None
        place = [held.full_name for held in self._of_homes.alike].index(axis.full_name)
        return np.where(self._listed, self._homes.alike[place][self._row], -1).astype(np.int32)


_IN_TWO_PLACES = "a household stands in two places", "give all its members the same geography"
_PLACES_DIFFER = (
    "a household stands elsewhere in the table of households",
    "give persons and households the same geography",
)
_NO_PLACE = (
    "some households of persons are not in the table of households, which alone has the places",
    "add them, or give the persons their geography",
)


def _grouped(
    hashes: NDArray[np.uint64], known: NDArray[np.bool_]
) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """The distinct hashes in order, and the place of each row's among them (-1 where there is none).

    Members mostly stand together, so that runs of equal hashes are sorted, not rows.
    """
    begins = np.ones(len(hashes), dtype=bool)
    begins[1:] = (hashes[1:] != hashes[:-1]) | (known[1:] != known[:-1])
    starts = np.flatnonzero(begins)
    held = known[starts]
    ids, run = np.unique(hashes[starts[held]], return_inverse=True)
    of_run = np.full(len(starts), -1, dtype=np.int32)
    of_run[held] = run
    return ids, np.repeat(of_run, np.diff(np.append(starts, len(hashes))))
