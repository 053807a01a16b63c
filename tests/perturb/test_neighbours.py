"""The claimed reach against all neighbours of small populations, for every unit, base, counted column and definition.

The populations, their derived attributes and their counts are made here, independently of the product; only the claim
is its own. A derived attribute is any function of who lives together: each one is drawn by chance.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain, combinations_with_replacement, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.maths.privacy.accounting import Neighbours
from discreet.maths.privacy.sensitivity import Reach
from discreet.perturb.reach import reach
from discreet.programme.cube import signatures
from discreet.programme.noise import PrivateNoise
from discreet.programme.programme import load_declaration
from tests.cases import few

MEMBERS = 3  # of the largest household
SEEDS = 32
FEWER = 6  # of whole households that replace each other: there are many

VARIABLES = {  # name -> what is declared, and which units have it
    "P": ('of = "person"', ("persons",)),
    "R": ('of = "person"', ("households",)),  # of a member who stands for the household
    "H": ('of = "household"', ("persons", "families", "households")),
    "K": ('of = "household"\nfixed = true', ("persons", "families", "households")),
    "F": ('of = "family"', ("persons", "families")),
    "D": ('of = "dwelling"', ("dwellings",)),
    "G": ('of = "dwelling"\nfixed = true', ("persons", "families", "households", "dwellings")),
}
FLAGS = {
    "own": ('of = "person"', ("persons",)),
    "shared": ('of = "household"', ("persons", "families", "households")),
    "kept": ('of = "household", fixed = true', ("persons", "families", "households")),
    "lit": ('of = "dwelling"', ("dwellings",)),
}
UNITS = ("persons", "families", "households", "dwellings")


class Spec(NamedTuple):
    """One cross-tabulation: what is counted by what."""

    unit: str
    axes: tuple[str, ...]
    base: str  # a variable that must have the code 0, or nothing
    flag: str


def specs() -> list[Spec]:
    found = []
    for unit in UNITS:
        names = [name for name, (_, units) in VARIABLES.items() if unit in units]
        flags = ["", *(name for name, (_, units) in FLAGS.items() if unit in units)]
        crossed = [(), *((name,) for name in names), tuple(names)]
        found += [Spec(unit, *one) for one in product(crossed, ["", *names], flags)]
    return found


SPECS = specs()


class Person(NamedTuple):
    code: int
    own: int
    family: int  # 0: in none; matters where families are fixed


class Household(NamedTuple):
    dwelling: int
    fixed: int
    members: tuple[Person, ...]


class World(NamedTuple):
    dwellings: tuple[int, ...]  # the places; a dwelling is known by its number
    households: tuple[Household, ...]


class Rules:
    """Any functions of who lives together, drawn once for each composition."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    @cache  # noqa: B019 - as many as the test has
    def code(self, name: str, composition: tuple[object, ...]) -> int:
        return random.Random(f"{self._seed}/{name}/{composition}").randrange(2)

    @cache  # noqa: B019
    def families(self, composition: tuple[object, ...]) -> tuple[int, ...]:
        chance = random.Random(f"{self._seed}/families/{composition}")
        return tuple(chance.randrange(2) for _ in range(chance.randint(0, len(composition))))


Record = tuple[tuple[str, int], ...]


def records(world: World, rules: Rules, fixed_families: bool) -> dict[str, Counter[Record]]:
    """The tables of all units: how often each combination of values occurs."""
    found: dict[str, Counter[Record]] = {unit: Counter() for unit in UNITS}
    inside: dict[int, list[tuple[object, ...]]] = {number: [] for number in range(len(world.dwellings))}
    for home in world.households:
        together = tuple(sorted((one.code, one.own) for one in home.members))
        inside[home.dwelling].append(together)
        shared = {
            "H": rules.code("H", together),
            "K": home.fixed,
            "G": world.dwellings[home.dwelling],
            "shared": rules.code("shared", together),
            "kept": home.fixed,
        }
        found["households"][_record(shared | {"R": max(one.code for one in home.members)})] += 1
        for one in home.members:
            family = rules.code("F", (together, one.code))
            found["persons"][_record(shared | {"P": one.code, "own": one.own, "F": family})] += 1
        for kind in _families(home, together, rules, fixed_families):
            found["families"][_record(shared | {"F": kind})] += 1
    for number, place in enumerate(world.dwellings):
        if place >= 0:
            people = tuple(sorted(inside[number]))
            codes = {"D": rules.code("D", people), "G": place, "lit": rules.code("lit", people)}
            found["dwellings"][_record(codes)] += 1
    return found


def _record(codes: dict[str, int]) -> Record:
    return tuple(sorted(codes.items()))


def _families(home: Household, together: tuple[object, ...], rules: Rules, fixed: bool) -> Iterator[int]:
    """The attribute of each family: of those that the members belong to, or of any that they form."""
    if not fixed:
        yield from rules.families(together)
        return
    for number in {one.family for one in home.members} - {0}:
        members = tuple(sorted((one.code, one.own) for one in home.members if one.family == number))
        yield rules.code("kind", members)


PERSONS = [Person(code, own, 0) for code, own in product(range(2), repeat=2)]
RELATED = [Person(code, own, family) for code, own, family in product(range(2), range(2), range(MEMBERS + 1))]


def with_person(world: World, people: list[Person]) -> Iterator[World]:
    """One person more: in a household that is not full, or in a new one, perhaps in a new dwelling."""
    for place, home in enumerate(world.households):
        if len(home.members) < MEMBERS:
            for one in people:
                grown = home._replace(members=(*home.members, one))
                yield world._replace(households=_put(world.households, place, grown))
    yield from with_household(world, [(one,) for one in people if one.family < 2])


def without_person(world: World) -> Iterator[World]:
    for place, home in enumerate(world.households):
        for gone in range(len(home.members)):
            rest = home.members[:gone] + home.members[gone + 1 :]
            if rest:
                smaller = home._replace(members=rest)
                yield world._replace(households=_put(world.households, place, smaller))
            else:
                yield from _without(world, place)


def with_household(world: World, compositions: list[tuple[Person, ...]]) -> Iterator[World]:
    for members, fixed in product(compositions, range(2)):
        for dwelling, place in enumerate(world.dwellings):
            if place >= 0:
                yield world._replace(households=(*world.households, Household(dwelling, fixed, members)))
        for place in range(2):
            home = Household(len(world.dwellings), fixed, members)
            yield World((*world.dwellings, place), (*world.households, home))


def without_household(world: World) -> Iterator[World]:
    for place in range(len(world.households)):
        yield from _without(world, place)


def _without(world: World, place: int) -> Iterator[World]:
    """Its dwelling is empty then, or is no dwelling any more."""
    rest = world.households[:place] + world.households[place + 1 :]
    yield world._replace(households=rest)
    dwelling = world.households[place].dwelling
    if all(home.dwelling != dwelling for home in rest):
        yield World(_put(world.dwellings, dwelling, -1), rest)


def _put(many: tuple[object, ...], place: int, one: object) -> tuple:  # type: ignore[type-arg]
    return (*many[:place], one, *many[place + 1 :])


def neighbours(world: World, protects: str, kind: Neighbours, fixed_families: bool) -> Iterator[World]:
    """All of them."""
    people = RELATED if fixed_families else PERSONS
    sizes = (combinations_with_replacement(PERSONS, size) for size in range(1, MEMBERS + 1))
    homes = list(chain.from_iterable(sizes))

    def gone(one: World) -> Iterator[World]:
        return without_person(one) if protects == "person" else without_household(one)

    def come(one: World) -> Iterator[World]:
        return with_person(one, people) if protects == "person" else with_household(one, homes)

    if kind is Neighbours.ADD_REMOVE:
        yield from chain(gone(world), come(world))
    else:
        yield from (after for before in gone(world) for after in come(before))


def drawn(seed: int, fixed_families: bool) -> World:
    """A small population: two households in two dwellings or one; half of them all in one cell, to change it most."""
    chance = random.Random(seed)
    dwellings = (chance.randrange(2), chance.randrange(2))
    if seed % 2:
        every = [
            tuple(Person(0, own, place + 1 if fixed_families else 0) for place in range(size))
            for own, size in ((1, MEMBERS), (chance.randrange(2), MEMBERS - 1))
        ]
        return World((0, 0), tuple(Household(place, 1, members) for place, members in enumerate(every)))
    people = RELATED if fixed_families else PERSONS
    homes = [
        Household(chance.randrange(2), chance.randrange(2), tuple(chance.choices(people, k=size)))
        for size in (chance.choice((1, MEMBERS)), MEMBERS - 1)
    ]
    return World(dwellings, tuple(homes))


def differences(
    protects: str, kind: Neighbours, fixed_families: bool
) -> dict[str, set[frozenset[tuple[Record, int]]]]:
    """What distinguishes the tables of neighbours, each difference once: record -> how many more there are."""
    found: dict[str, set[frozenset[tuple[Record, int]]]] = {unit: set() for unit in UNITS}
    few = protects == "household" and kind is Neighbours.SUBSTITUTE
    for seed in range(FEWER if few else SEEDS):
        rules, world = Rules(seed), drawn(seed, fixed_families)
        before = records(world, rules, fixed_families)
        for other in neighbours(world, protects, kind, fixed_families):
            after = records(other, rules, fixed_families)
            for unit in UNITS:
                changed = Counter(after[unit])
                changed.subtract(before[unit])
                found[unit].add(frozenset((record, by) for record, by in changed.items() if by))
    return found


class Changes(NamedTuple):
    """What distinguishes the tables of neighbours, in a matrix."""

    records: list[Record]
    by: NDArray[np.float64]  # (difference, record) -> how many more there are


def arranged(found: set[frozenset[tuple[Record, int]]]) -> Changes:
    number: dict[Record, int] = {}
    for record, _ in chain.from_iterable(found):
        number.setdefault(record, len(number))
    by = np.zeros((len(found), len(number)))
    for row, changed in zip(by, found, strict=True):
        for record, more in changed:
            row[number[record]] = more
    return Changes(list(number), by)


def true_reach(spec: Spec, found: Changes) -> Reach:
    """The largest change of a cross-tabulation, by counting."""
    number: dict[tuple[int, ...], int] = {}
    counted = [(at, dict(record)) for at, record in enumerate(found.records)]
    counted = [
        (at, held)
        for at, held in counted
        if not (spec.base and held[spec.base]) and not (spec.flag and not held[spec.flag])
    ]
    cells = [number.setdefault(tuple(held[axis] for axis in spec.axes), len(number)) for _, held in counted]
    summed = np.zeros((len(found.records), len(number)))  # (record, cell) -> whether it is counted there
    summed[[at for at, _ in counted], cells] = 1
    changes = np.abs(found.by @ summed)
    return Reach(
        int(changes.sum(axis=1).max(initial=0)),
        int((changes**2).sum(axis=1).max(initial=0)),
        int(changes.max(initial=0)),
    )


def claims(folder: Path, noise: str, fixed_families: bool) -> dict[Spec, Reach]:
    """What the product claims for each cross-tabulation of a programme that declares all this."""
    text = ["[population]"]
    text += [f'{unit} = "absent.parquet"' for unit in UNITS]
    text += ['person_id = "pid"', 'household_id = "hid"', 'family_id = "fid"', 'dwelling_id = "did"']
    text += [f"fixed_families = {str(fixed_families).lower()}", "[population.flags]"]
    text += [f"{name} = {{ {declared} }}" for name, (declared, _) in FLAGS.items()]
    for name, (declared, _) in VARIABLES.items():
        text += [f"[variables.{name}]", 'codelist = "two.csv"', declared]
    for number, spec in enumerate(SPECS):
        text += ["[[cubes]]", f'id = "{number}"', f'unit = "{spec.unit}"']
        # a cube has an axis at least; its cross-tabulation without any is its total
        text += [f"axes = {list(spec.axes or ('G',))}".replace("'", '"')]
        text += [f"base = '{spec.base} == \"0\"'"] if spec.base else []
        text += [f'count = "{spec.flag}"'] if spec.flag else []
    (folder / "two.csv").write_text("code,parent,label\n0,,\n1,,\n")
    (folder / "p.toml").write_text("\n".join([*text, "[noise]", noise]))
    programme = load_declaration(folder / "p.toml")
    assert isinstance(programme.noise, PrivateNoise)
    found = {}
    for spec, cube in zip(SPECS, programme.cubes, strict=True):
        (signature,) = (
            one for one in signatures([cube]) if {name for name, _ in one.levels} == set(spec.axes)
        )
        found[spec] = reach(signature, programme.noise)
    return found


@pytest.mark.parametrize(
    ("protects", "kind", "fixed_families"),
    few(product(["person", "household"], Neighbours, [False, True]), 0, 1, 6, 7),
)
def test_no_neighbour_changes_a_cross_tabulation_by_more_than_is_claimed(
    tmp_path: Path, protects: str, kind: Neighbours, fixed_families: bool
) -> None:
    noise = (
        f'kind = "geometric"\nepsilon = 1\nprotects = "{protects}"\nneighbours = "{kind.value}"\n'
        f"largest_household = {MEMBERS}\n"
    )
    claimed = claims(tmp_path, noise, fixed_families)
    every = {unit: arranged(found) for unit, found in differences(protects, kind, fixed_families).items()}
    attained, loose = set(), {}
    for spec, claim in claimed.items():
        true = true_reach(spec, every[spec.unit])
        assert true.l1 <= claim.l1, spec
        assert true.l2_squared <= claim.l2_squared, spec
        assert true.largest <= claim.largest, spec
        if true == claim:
            attained.add((spec.unit, claim))
        else:
            loose[spec] = (true, claim)
    print(f"{len(loose)} of {len(claimed)} claims are larger than any change that was found")
    never = {spec.unit for spec in loose if (spec.unit, claimed[spec]) not in attained}
    # families that are formed in the worst way twice are too rare to be drawn here
    assert never <= ({"families"} if kind is Neighbours.SUBSTITUTE else set())
