"""Processes of the server: a worker that charges tables of a programme to one user, and one that saves queries."""

import random
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import cast

from discreet.io.store import Database
from discreet.maths.privacy.accounting import Neighbours, PureEpsilon
from discreet.perturb.ledger import Ledger
from discreet.programme.cube import Cube, Signature, signatures
from discreet.programme.noise import Protects
from discreet.programme.programme import load_programme
from discreet.programme.serve import HistoryRule
from discreet.serve.budget import Accounts, PrivateTables
from discreet.serve.history import History
from discreet.serve.http.security import stored_key
from discreet.serve.jobs_store import Store
from discreet.serve.query import Axis, Query

USER = "ann"


@dataclass(frozen=True)
class Declared:
    """A rule of noise, as far as prices need it."""

    is_gaussian: bool = False
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    protects: Protects = Protects.PERSON


@dataclass(frozen=True)
class Prices:
    """Every cross-tabulation costs 1."""

    budget: PureEpsilon
    rule: Declared = Declared()
    common_budget: PureEpsilon | None = None

    def costly(self, cube: Cube) -> tuple[Signature, ...]:
        return signatures([cube])

    def identity(self, _cube: Cube, signature: Signature) -> str:
        return str(signature)

    def loss(self, _cube: Cube, wanted: tuple[Signature, ...]) -> PureEpsilon:
        return PureEpsilon(Fraction(len(wanted)))

    def share(self, _signature: Signature) -> Fraction:
        return Fraction(1)

    def parameter(self, _signature: Signature) -> Fraction:
        return Fraction(1)


def now() -> datetime:
    return datetime.now(UTC)


def tell(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def main(where: str, path: str, name: str, budget: str, times: str) -> None:
    cubes = list(load_programme(Path(path)).cubes) * int(times)
    random.Random(name).shuffle(cubes)
    prices = cast("PrivateTables", Prices(PureEpsilon(Fraction(budget))))
    tell("ready")
    sys.stdin.readline()  # all start together
    store = Store(where, now)
    History(store.database, HistoryRule())
    key = stored_key(Database(where, "store"), "users")
    accounts = Accounts(Ledger.create(where, now), prices, b"key")
    tell(f"key {key.hex()}")
    for cube in cubes:
        tell(f"{'refused' if accounts.charge(USER, cube) else 'charged'} {cube.id}")


def save_queries(where: str) -> None:
    """Save one query after another, telling each once it is saved."""
    store = Store(where, now)
    for number in range(100_000):
        tell(store.save_query(Query("persons", (Axis("SEX"),), "", str(number))).id)
