"""Every account beside every noise: it is charged what the release states, or one line names the account to open."""

import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.cli.app import main
from discreet.errors import Mistakes
from discreet.io.secret import make_secret, read_secret
from discreet.maths.cells.keys import derive
from discreet.maths.privacy.accounting import (
    ARITHMETIC,
    EpsilonDelta,
    Neighbours,
    PrivacyLoss,
    PureEpsilon,
    Rho,
    epsilon_of_drawn_rho,
)
from discreet.perturb.choose import mechanism
from discreet.perturb.cost import own_cost, release_cost
from discreet.perturb.ledger import Ledger
from discreet.perturb.private import PrivateMechanism
from discreet.programme.programme import load_programme

ACCOUNTS: dict[str, PrivacyLoss] = {
    "epsilon": PureEpsilon(Fraction(30)),
    "epsilon and delta": EpsilonDelta(Fraction(90), Fraction(1, 10**4)),
    "rho": Rho(Fraction(1)),
}
NOISE = {
    "geometric": "epsilon = 2",
    "laplace": "epsilon = 2\nbound = 30\ndelta = 1e-5",
    "normal": "epsilon = 2\nbound = 60\ndelta = 1e-5",
    "hellinger": "epsilon = 20",  # a wide law takes seconds
    "discrete-gaussian": "rho = 0.5",
    "discrete-gaussian at a delta": "rho = 0.5\ndelta = 1e-6",
}
WORKS = {
    ("epsilon", "geometric"),
    ("epsilon", "hellinger"),
    ("epsilon and delta", "geometric"),
    ("epsilon and delta", "hellinger"),
    ("epsilon and delta", "laplace"),
    ("epsilon and delta", "normal"),
    ("epsilon and delta", "discrete-gaussian at a delta"),
    ("rho", "discrete-gaussian"),
    ("rho", "discrete-gaussian at a delta"),
}
EVERY = [(account, noise) for account in ACCOUNTS for noise in NOISE]


def clock() -> datetime:
    return datetime(2021, 5, 9, 12, tzinfo=UTC)


@cache
def chosen(noise: str, neighbours: Neighbours) -> PrivateMechanism:
    with TemporaryDirectory() as folder:
        return made_in(Path(folder), noise, neighbours)


def made_in(folder: Path, noise: str, neighbours: Neighbours) -> PrivateMechanism:
    (folder / "sex.csv").write_text("code,parent,label\nf,,\nm,,\n")
    pq.write_table(
        pa.table({"pid": list(range(40)), "sex": ["f", "m", "m", "f"] * 10}), folder / "persons.parquet"
    )
    path = folder / "programme.toml"
    path.write_text(
        '[population]\npersons = "persons.parquet"\nperson_id = "pid"\n'
        '[variables.SEX]\nof = "person"\ncodelist = "sex.csv"\n[[cubes]]\nid = "c"\naxes = ["SEX"]\n'
        f'[noise]\nallow_weak = true\nlarge_delta = true\nkind = "{noise.split(" ", maxsplit=1)[0]}"\n{NOISE[noise]}\n'
        f'neighbours = "{neighbours.value}"\n'
    )
    made = mechanism(load_programme(path), bytes(32), bytes(32))
    assert isinstance(made, PrivateMechanism)
    return made


@pytest.fixture(params=list(Neighbours), ids=lambda one: one.value)
def neighbours(request: pytest.FixtureRequest) -> Neighbours:
    found: Neighbours = request.param
    return found


@pytest.mark.parametrize(("account", "noise"), EVERY)
def test_every_account_pays_or_names_the_one_to_open(
    tmp_path: Path, account: str, noise: str, neighbours: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = chosen(noise, neighbours)
    ledger = Ledger.create(tmp_path / "l.db", clock)
    terms = ledger.create_account("a", ACCOUNTS[account], neighbours, "person")
    if (account, noise) in WORKS:
        loss = release_cost(made, terms)
        entry = ledger.charge("a", loss, "key", "release")
        assert entry.charge == loss
        assert states_no_less(loss, made)
        assert ledger.verify() == ()
        return
    with pytest.raises(Mistakes) as refusal:
        release_cost(made, terms)
    assert "\n" not in str(refusal.value)
    other = opened(str(refusal.value), tmp_path, monkeypatch)
    other.charge("n", release_cost(made, other.account("n")), "key", "release")


def states_no_less(loss: PrivacyLoss, made: PrivateMechanism) -> bool:
    """Whether a charge is at least what the release guarantees by itself."""
    guarantee = made.noise().guarantee
    assert guarantee is not None
    if isinstance(loss, Rho):
        return loss.rho == guarantee.rho
    assert isinstance(loss, EpsilonDelta)
    if guarantee.rho is not None:
        stated = epsilon_of_drawn_rho(guarantee.rho, guarantee.delta, guarantee.distance)
        return loss == EpsilonDelta(Fraction(stated), guarantee.delta)
    return loss.epsilon == guarantee.epsilon and made.plan.delta() <= loss.delta


def opened(message: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """Open the account that a refusal names, exactly as it is printed."""
    make_secret(folder / "s.key")
    seal = derive(read_secret(str(folder / "s.key"), {}), "ledger")
    found = re.search(r"discreet (ledger account LEDGER NAME .*)", message)
    assert found is not None, message
    words = shlex.split(found[1].replace("LEDGER", str(folder / "new.db")).replace("NAME", "n"))
    Ledger.create(folder / "new.db", clock, seal)
    monkeypatch.setattr("sys.argv", ["discreet", *words, "--secret", str(folder / "s.key")])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    return Ledger.open(folder / "new.db", clock, seal)


@pytest.mark.parametrize(("account", "noise"), sorted(WORKS))
def test_an_account_for_other_neighbours_is_refused(tmp_path: Path, account: str, noise: str) -> None:
    made = chosen(noise, Neighbours.SUBSTITUTE)
    ledger = Ledger.create(tmp_path / "l.db", clock)
    terms = ledger.create_account("a", ACCOUNTS[account], Neighbours.ADD_REMOVE, "person")
    with pytest.raises(Mistakes, match="is for add-remove of a person, the noise for substitute") as refusal:
        release_cost(made, terms)
    assert "--neighbours substitute" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def pure_losses() -> Iterator[EpsilonDelta]:
    for noise in ("geometric", "hellinger"):
        loss = own_cost(chosen(noise, Neighbours.ADD_REMOVE).certified())
        assert isinstance(loss, EpsilonDelta)
        yield loss


def test_noise_that_is_pure_on_paper_has_only_a_delta_of_arithmetic() -> None:
    """So small that a thousand releases stay within what a pure account allows, and above 0, because it is stated."""
    for loss in pure_losses():
        assert 0 < loss.delta < ARITHMETIC / 1000
