"""Whether households are as small as the noise assumes; their sizes are compared, and never shown."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator

from discreet.errors import Problem
from discreet.io.databases import open_source
from discreet.io.id_hashes import IdHashes
from discreet.maths.cells.keys import SECRET_BYTES
from discreet.population import encode
from discreet.programme.noise import PrivateNoise
from discreet.programme.population import Unit
from discreet.programme.programme import Programme

KEY = "noise.largest_household"
COUNTED = {"persons": "members", "families": "families"}


def household_problems(programme: Programme, counted: Collection[str]) -> Iterator[Problem]:
    """Problems with the declared size of the largest household, where the counted units depend on it.

    Ready-made counts without records cannot be compared with it: there it is the office's own declaration.
    """
    noise, population = programme.noise, programme.population
    if not isinstance(noise, PrivateNoise) or not noise.is_guaranteed or noise.largest_household is None:
        return
    if population is None or not set(counted) & set(COUNTED):
        return
    for name in COUNTED:
        if name in population.units:
            column = population.ids.get("households")
            yield from _unit_problems(population.units[name], column, noise.largest_household)


def _unit_problems(unit: Unit, column: str | None, largest: int) -> Iterator[Problem]:
    records = open_source(unit.source, f"population.{unit.name}")
    if column is None or column not in records.schema.names:
        if unit.name == "persons":
            value = "cannot be checked: no column of persons gives the household of each"
            yield Problem(records.name, KEY, value, "name it with population.household_id")
        return
    key, found = secrets.token_bytes(SECRET_BYTES), IdHashes()
    for batch in records.batches([column], []):
        ids = batch.column(column).drop_null()  # who has none lives in no household with others
        try:
            if len(ids):
                found.add(encode.hashed_ids(ids, key, "household-sizes"))
        except encode.BadColumn as bad:
            yield Problem(records.name, f"column {column}", bad.value, bad.remedy)
            return
    if found.occurs(largest + 1):
        value = f"{largest} is too small: a household has more {COUNTED[unit.name]} than that"
        yield Problem(
            records.name, KEY, value, "state the size of the largest household, or correct the records"
        )
