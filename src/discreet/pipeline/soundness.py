"""What makes records and keys unfit for a p-table; absent or inconsistent protection is an error."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.errors import Problem
from discreet.maths.keys import improbably_small
from discreet.population.reading import UnitReader
from discreet.schema.cube import Cube


def record_problems(reader: UnitReader, key_modulus: int | None, records: int) -> Iterator[Problem]:
    """Everything wrong with a unit's table after it has been read to its end."""
    if not records:
        yield Problem(reader.records.name, "population", "no records", "give a table that holds some")
    yield from reader.problems()
    largest = reader.largest_given_key
    if key_modulus and largest is not None and improbably_small(largest, records, key_modulus):
        value = f"record keys too small for the p-table, which expects them up to {key_modulus - 1}"
        remedy = "use a p-table made for these keys, or leave record_key out so that the secret makes them"
        yield Problem(reader.records.name, "population.record_key", value, remedy)


def modulus_problems(modulus: int, key_modulus: int, cube: Cube) -> Iterator[Problem]:
    """Cell keys modulo M tell the key modulo m only where m divides M and M divides 2^32."""
    if modulus % key_modulus or 2**32 % modulus:
        value = f"cell keys modulo {modulus} with a p-table modulo {key_modulus}"
        remedy = "use a p-table of that modulus, or keys from 0 to 4294967295"
        yield Problem("", f"cubes.{cube.id}.counts", value, remedy)
