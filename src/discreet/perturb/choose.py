"""From a declared noise rule to a mechanism that is ready to perturb; it perturbs nothing itself."""

from __future__ import annotations

from pathlib import Path

from discreet.maths.keys import derive
from discreet.maths.lookup import Order, build
from discreet.maths.ptable_solver import PTableParameters, Variance, solve
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.schema.rules import CellKeyNoise


def mechanism(noise: CellKeyNoise, secret: bytes) -> CellKeyMechanism:
    """Make the mechanism of a noise rule; the secret decides the order of the lookup intervals."""
    table = noise.table
    assert not isinstance(table, Path)
    law = solve(
        PTableParameters(table.D, table.V, table.js, table.pstay, variance=Variance(table.variance.value))
    )
    order = Order(noise.order.value)
    return CellKeyMechanism(
        law, build(law, order, None if order is Order.PLAIN else derive(secret, "lookup-order"))
    )
