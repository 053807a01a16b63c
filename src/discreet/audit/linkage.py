"""Linkage: reconstructed records matched with known persons, and how many of these matches are right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.audit.area_tables import Space, places
from discreet.audit.evidence import Integers
from discreet.audit.reconstruction import JudgedReconstruction, Reconstruction, TrueRecords, share_of
from discreet.errors import Mistakes, Problem


@dataclass(frozen=True, eq=False, repr=False)
class Auxiliary:
    """Persons known to an attacker: where they live and some categories, with the errors of such a file."""

    person: Integers  # row among the true records: confirms a match, is never shown
    area: Integers  # place among the reconstructed areas, -1 elsewhere
    known: Mapping[str, Integers]  # quasi-identifier -> category in the reconstruction's space


@dataclass(frozen=True, eq=False, repr=False)
class Linked:
    """For each person of the auxiliary file the reconstructed records with the same quasi-identifiers and area."""

    reconstruction: Reconstruction
    auxiliary: Auxiliary
    candidates: Integers  # how many records fit
    cell: Integers  # the joint cell of the only one, -1 where there is none or more than one

    @property
    def matched(self) -> int:
        """Persons with exactly one matching record."""
        return int((self.cell >= 0).sum())

    def as_json(self) -> Mapping[str, object]:
        """How many found a record."""
        persons = len(self.candidates)
        return {
            "persons": persons,
            "quasi_identifiers": list(self.auxiliary.known),
            "r_any_match": share_of(int((self.candidates > 0).sum()), persons),
            "r_match": share_of(self.matched, persons),
        }


@dataclass(frozen=True)
class Confirmed:
    """How many matches of a linkage are right."""

    persons: int
    matched: int  # putative re-identifications
    confirmed: int  # of them with area, quasi-identifiers and all other variables as in the true record
    guessed: int  # of them right if the others were guessed from the reconstructions of other areas
    r_recon: float

    @property
    def r_match(self) -> float:
        """The share of persons with exactly one record."""
        return share_of(self.matched, self.persons)

    @property
    def r_reid(self) -> float:
        """The share of persons who are re-identified, confirmed one by one."""
        return share_of(self.confirmed, self.persons)

    @property
    def gain(self) -> float:
        """The share of persons who are re-identified beyond those whose other variables are guessed as well."""
        return share_of(self.confirmed - self.guessed, self.persons)

    @property
    def precision(self) -> float:
        """The share of putative re-identifications that are right."""
        return share_of(self.confirmed, self.matched)

    def as_json(self) -> Mapping[str, object]:
        """The rates."""
        return {
            "persons": self.persons,
            "r_match": self.r_match,
            "r_reid": self.r_reid,
            "r_recon_times_r_match": self.r_recon * self.r_match,
            "r_reid_gain": self.gain,
            "precision": self.precision,
            "precision_by_guessing": share_of(self.guessed, self.matched),
        }


def made_auxiliary(
    reconstruction: Reconstruction,
    records: TrueRecords,
    known: Sequence[str],
    errors: Mapping[str, float] | None = None,
    share: float = 1.0,
    seed: int = 1,
) -> Auxiliary:
    """A file of a random share of the areas' residents; ``errors`` are shares of values replaced by another one.

    The geography can have errors too: such a person is looked for in another of the reconstructed areas.
    """
    errors, generator = errors or {}, np.random.default_rng(seed)
    _check(reconstruction, known, errors)
    everyone = auxiliary(reconstruction, records, np.arange(len(records.cells(reconstruction))), known)
    inside = np.flatnonzero((everyone.area >= 0) & (generator.random(len(everyone.area)) < share))
    area = _altered(
        everyone.area[inside],
        len(reconstruction.areas),
        errors.get(reconstruction.geography, 0.0),
        generator,
    )
    altered = {
        name: _altered(column[inside], _size(reconstruction.space, name), errors.get(name, 0.0), generator)
        for name, column in everyone.known.items()
    }
    return Auxiliary(inside, area, altered)


def auxiliary(
    reconstruction: Reconstruction, file: TrueRecords, person: Integers, known: Sequence[str]
) -> Auxiliary:
    """A file that the office has; ``person`` is the row of each among the true records."""
    _check(reconstruction, known, {})
    space = reconstruction.space
    columns = {}
    for name in known:
        codes = space.codes[space.variables.index(name)]
        columns[name] = places(file.codelists[name], codes)[file.columns[name]]
    return Auxiliary(person, file.areas(reconstruction), columns)


def link(reconstruction: Reconstruction, auxiliary: Auxiliary) -> Linked:
    """Match every person with the reconstructed records of the area that have the same quasi-identifiers."""
    names = list(auxiliary.known)
    pattern, patterns = _patterns(reconstruction.space, names)
    wanted = _pattern_of(reconstruction.space, names, auxiliary.known)
    candidates = np.zeros(len(wanted), dtype=np.int64)
    cell = np.full(len(wanted), -1, dtype=np.int64)
    for k, area in enumerate(reconstruction.areas):
        here = np.flatnonzero((auxiliary.area == k) & (wanted >= 0))
        fits, only = np.zeros(patterns, dtype=np.int64), np.full(patterns, -1, dtype=np.int64)
        np.add.at(fits, pattern[area.cells], area.counts)
        only[pattern[area.cells]] = area.cells
        candidates[here] = fits[wanted[here]]
        cell[here] = np.where(candidates[here] == 1, only[wanted[here]], -1)
    return Linked(reconstruction, auxiliary, candidates, cell)


def confirm(linked: Linked, records: TrueRecords, judged: JudgedReconstruction) -> Confirmed:
    """Look the putative re-identifications up in the true records."""
    reconstruction, auxiliary = linked.reconstruction, linked.auxiliary
    true_area = records.areas(reconstruction)[auxiliary.person]
    true_cell = records.cells(reconstruction)[auxiliary.person]
    putative = (linked.cell >= 0) & (true_area == auxiliary.area)
    return Confirmed(
        len(linked.cell),
        linked.matched,
        int((putative & (true_cell == linked.cell)).sum()),
        int((putative & (true_cell == _guesses(linked))).sum()),
        judged.r_recon,
    )


def _guesses(linked: Linked) -> Integers:
    """The commonest record elsewhere with the same quasi-identifiers: a guess that uses only statistics."""
    reconstruction, auxiliary = linked.reconstruction, linked.auxiliary
    names = list(auxiliary.known)
    pattern, _ = _patterns(reconstruction.space, names)
    wanted = _pattern_of(reconstruction.space, names, auxiliary.known)
    pool, made = reconstruction.histograms.sum(axis=0), reconstruction.histograms
    guesses = np.full(len(linked.cell), -1, dtype=np.int64)
    for k in np.flatnonzero(linked.cell >= 0).tolist():
        cells = np.flatnonzero(pattern == wanted[k])
        elsewhere = (pool - made[auxiliary.area[k]])[cells]
        guesses[k] = cells[int(elsewhere.argmax())]
    return guesses


def _patterns(space: Space, names: Sequence[str]) -> tuple[Integers, int]:
    """Joint cell -> number of its combination of quasi-identifiers, and how many combinations there are."""
    categories = dict(zip(space.variables, space.categories(np.arange(space.size)), strict=True))
    return _pattern_of(space, names, categories), prod(_size(space, name) for name in names)


def _pattern_of(space: Space, names: Sequence[str], columns: Mapping[str, Integers]) -> Integers:
    """The number of each combination, -1 where a category is unknown."""
    number = np.zeros(len(columns[names[0]]), dtype=np.int64)
    unknown = np.zeros(len(number), dtype=bool)
    for name in names:
        number = number * _size(space, name) + columns[name]
        unknown |= columns[name] < 0
    return np.where(unknown, -1, number)


def _altered(values: Integers, size: int, share: float, generator: np.random.Generator) -> Integers:
    """A share of the values replaced by another one, all others equally likely."""
    wrong: NDArray[np.bool_] = generator.random(len(values)) < share
    if size < 2:
        return values
    moved = (values + generator.integers(1, size, len(values))) % size
    return np.where(wrong, moved, values)


def _size(space: Space, name: str) -> int:
    return len(space.codes[space.variables.index(name)])


def _check(reconstruction: Reconstruction, known: Sequence[str], errors: Mapping[str, float]) -> None:
    wrong = list(file_problems(reconstruction.space, reconstruction.geography, known, errors))
    if wrong:
        raise Mistakes(wrong)


def file_problems(
    space: Space, geography: str, known: Sequence[str], errors: Mapping[str, float]
) -> Iterator[Problem]:
    """What an intruder's file cannot have: variables that are not reconstructed, errors of what it does not know."""
    unknown = [name for name in known if name not in space.variables]
    if unknown or not known:
        remedy = f"choose from {', '.join(space.variables)}"
        yield Problem("", "quasi-identifiers", ", ".join(unknown) or "none", remedy)
        return
    for name, share in errors.items():
        if name not in (*known, geography) or not 0 <= share <= 1:
            yield Problem("", "errors", f"{name} = {share}", "give a known variable a share between 0 and 1")
