"""From a declared noise rule to a mechanism that is ready to perturb; it perturbs nothing itself."""

from __future__ import annotations

from pathlib import Path

from discreet.maths.keys import derive
from discreet.maths.lookup import Lookup, Order, build
from discreet.maths.ptable_solver import solve
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.schema.ptable_files import PTableFormat, read_ptable
from discreet.schema.rules import CellKeyNoise


def mechanism(noise: CellKeyNoise, secret: bytes) -> CellKeyMechanism:
    """Make the mechanism of a noise rule; the secret decides the order of the lookup intervals."""
    shuffle = None if noise.order is Order.PLAIN else derive(secret, "lookup-order")
    if isinstance(noise.table, Path):
        return CellKeyMechanism(_lookup_of_file(noise.table, noise.order, shuffle))
    law = solve(noise.table)
    return CellKeyMechanism(build(law, noise.order, shuffle), law.notes)


def _lookup_of_file(path: Path, order: Order, shuffle: bytes | None) -> Lookup:
    """A file that lists keys says itself which key gets which change; one of probabilities is laid out by the rule."""
    file = read_ptable(path)
    if file.format is not PTableFormat.R or order is Order.PLAIN:
        return file.lookup
    return build(file.law(), order, shuffle)
