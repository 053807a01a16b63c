"""Noise with a guarantee: what answers cost, that repeated ones are free, and that nothing leaves uncharged."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import select

from discreet.errors import Mistakes
from discreet.io.progress import Quiet
from discreet.io.register import Register
from discreet.maths.privacy.accounting import EpsilonDelta, Rho
from discreet.perturb.choose import mechanism
from discreet.perturb.ledger import Ledger
from discreet.pipeline.protect import protect
from discreet.programme.programme import Programme, load_programme
from discreet.programme.serve import AccountRule
from discreet.release.reader import open_release
from discreet.run.run import Run
from discreet.serve.answer import Answer, Balance, Refusal, Rule
from discreet.serve.budget import COMMON, EVERYONE, _charged, account_of
from discreet.serve.catalogue import programme_catalogue
from discreet.serve.jobs_store import Store
from discreet.serve.open import TableBuilder, serve_programme
from discreet.serve.query import Axis, Group, Query
from discreet.serve.records import EncodedUnit, read_units
from tests.cases import BOTH_DATABASES
from tests.serve.conftest import NOON, SECRET, cells, published, query

Make = Callable[[str, str], TableBuilder]
GEOMETRIC = 'kind = "geometric"\nepsilon = 400\nsnapshot = "2021"\n'


@pytest.fixture
def store(where: str) -> Store:
    return Store(where, lambda: NOON)


@pytest.fixture
def ledger(where: str) -> Ledger:
    """In the same database as the store."""
    return Ledger.create(where, lambda: NOON)


def declared(census: Path, folder: Path, noise: str, serve: str) -> Programme:
    shutil.copytree(census, folder, dirs_exist_ok=True)
    text = (census / "programme.toml").read_text()
    before = text.partition("[noise]")[0]
    before = before.partition("[swap]")[0]
    (folder / "programme.toml").write_text(f"{before}[noise]\nallow_weak = true\n{noise}\n[serve]\n{serve}\n")
    return load_programme(folder / "programme.toml")


@pytest.fixture(scope="module")
def units(census: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, EncodedUnit]:
    """The records as they are read; neither the noise nor a rule changes them."""
    programme = declared(
        census, tmp_path_factory.mktemp("read"), GEOMETRIC, "account = { each = 1, user = 9 }"
    )
    chosen = mechanism(programme, SECRET, SECRET)
    run = Run(programme=programme, secret=SECRET, mechanism=chosen, threads=1, progress=Quiet())
    return read_units(run, programme_catalogue(programme, chosen.noise().public(programme.release.disclose)))


@pytest.fixture
def make(
    census: Path,
    tmp_path: Path,
    store: Store,
    ledger: Ledger,
    units: dict[str, EncodedUnit],
    monkeypatch: pytest.MonkeyPatch,
) -> Make:
    def made(noise: str, serve: str) -> TableBuilder:
        programme = declared(census, tmp_path / "census", noise, serve)
        with monkeypatch.context() as patch:
            patch.setattr("discreet.serve.open.read_units", lambda *_: units)
            register = Register.of(tmp_path / "register", SECRET)
            return serve_programme(programme, SECRET, store, ledger=ledger, register=register)

    return made


def spent(ledger: Ledger, user: str) -> Fraction:
    loss = ledger.spent(account_of(user))
    return loss.rho if isinstance(loss, Rho) else loss.epsilon


@BOTH_DATABASES
def test_each_new_cross_tabulation_is_charged_once(make: Make, ledger: Ledger) -> None:
    builder = make(GEOMETRIC, 'account = { each = "1/4", user = 5 }')
    first = builder.ask(query("EDU", "LOC"), "ann")
    assert isinstance(first, Answer)
    total, edu = spent(ledger, "ann"), builder.preview(query("EDU", "LOC"), "ann")
    assert edu.cost == "nothing: you have it already"
    assert cells(builder.ask(query("LOC", "EDU"), "ann")) == {(b, a): v for (a, b), v in cells(first).items()}
    assert cells(builder.ask(query("EDU"), "ann"))
    assert spent(ledger, "ann") == total, "a part of what was paid for"
    assert isinstance(builder.ask(query("EDU", "HAR"), "ann"), Answer)
    assert spent(ledger, "ann") == total + Fraction(4, 4), "two levels of HAR, alone and by EDU"
    assert cells(builder.ask(query("EDU", "LOC"), "bob")) == cells(first), "the same noise for everybody"
    assert spent(ledger, "bob") == total
    assert ledger.verify() == ()
    assert "epsilon = 5 at most" in first.noise


def test_a_preview_tells_the_price_and_what_is_left(make: Make, ledger: Ledger) -> None:
    builder = make(GEOMETRIC, 'account = { each = "1/4", user = 5 }')
    before = builder.preview(query("EDU", "LOC"), "ann").balance
    assert before is not None
    assert (before.measure, before.left, before.whole) == ("epsilon", Fraction(5), Fraction(5))
    assert ledger.accounts() == (), "a look makes no account"
    builder.ask(query("EDU", "LOC"), "ann")
    assert before.price == spent(ledger, "ann")
    after = builder.preview(query("EDU", "LOC"), "ann").balance
    assert after == Balance("epsilon", Fraction(0), 5 - before.price, Fraction(5))


def test_an_exhausted_budget_is_a_polite_refusal_and_costs_nothing(make: Make, ledger: Ledger) -> None:
    builder = make(GEOMETRIC, "account = { each = 1, user = 5 }")
    assert isinstance(builder.ask(query("OCC"), "ann"), Answer)
    before = spent(ledger, "ann")
    found = builder.ask(query("OCC", "HAR", "LOC"), "ann")
    assert isinstance(found, Refusal)
    assert found.rule is Rule.BUDGET
    assert "is left of your privacy budget" in found.message
    assert spent(ledger, "ann") == before
    assert isinstance(builder.ask(query("OCC"), "ann"), Answer), "what is paid for stays free"
    assert isinstance(builder.ask(query("OCC", where='SEX == "1"'), "ann"), Answer), "2 left"
    assert isinstance(builder.ask(query("OCC", where='SEX == "2"'), "ann"), Refusal)


def test_released_cross_tabulations_have_the_values_of_the_release(
    census: Path, tmp_path: Path, store: Store, ledger: Ledger
) -> None:
    programme = declared(census, tmp_path / "c", GEOMETRIC, "account = { each = 1, user = 1000 }")
    register = Register.of(tmp_path / "register", SECRET)
    protect(programme, SECRET, tmp_path / "r", tmp_path / "p.json", clock=lambda: NOON, register=register)
    builder = serve_programme(programme, SECRET, store, ledger=ledger, register=register)
    listed = published(open_release(tmp_path / "r"), "flag")
    found = cells(builder.ask(query("GEO.M", "SEX", "AGE.M", count="works"), "ann"))
    assert {codes: value for codes, value in found.items() if value} == listed


def test_rho_and_deltas_are_charged_as_a_release_states_them(make: Make, ledger: Ledger) -> None:
    gaussian = make(
        'kind = "discrete-gaussian"\nrho = 300\nsnapshot = "2021"\n', 'account = { each = "1/2", user = 2 }'
    )
    assert isinstance(gaussian.ask(query("OCC"), "ann"), Answer)
    assert spent(ledger, "ann") >= Fraction(1, 2)
    assert isinstance(ledger.account(account_of("ann")).budget, Rho)
    laplace = make(
        'kind = "laplace"\nepsilon = 3000\nbound = 30\ndelta = 1e-4\nsnapshot = "2021"\n',
        "account = { each = 1, user = 20 }",
    )
    assert isinstance(laplace.ask(query("OCC"), "bob"), Answer)
    loss = ledger.spent(account_of("bob"))
    assert isinstance(loss, EpsilonDelta)
    assert 0 < loss.delta < Fraction(1, 10**4)


def test_truncation_that_costs_more_delta_than_declared_is_refused(make: Make) -> None:
    noise = 'kind = "laplace"\nepsilon = 9000\nbound = 30\ndelta = 1e-9\nsnapshot = "2021"\n'
    builder = make(noise, 'account = { each = "1/10", user = 3 }')
    found = builder.ask(query("OCC", "LOC"), "bob")
    assert isinstance(found, Refusal), (
        "each answer at epsilon 1/10 truncated at 30 costs a delta far above 1e-9"
    )


def test_groupings_have_noise_of_their_own_and_ranges_are_exact(make: Make) -> None:
    builder = make(GEOMETRIC, 'groupings = ["AGE"]\naccount = { each = 1, user = 50 }')
    groups = (Group("young", ("Y_LT15",)), Group("rest", ("Y15-29", "Y30-49")))
    answer = builder.ask(Query("persons", (Axis("AGE", (), groups), Axis("SEX"))), "ann")
    assert isinstance(answer, Answer)
    renamed = (Group("b", ("Y30-49", "Y15-29")), Group("a", ("Y_LT15",)))
    again = builder.ask(Query("persons", (Axis("AGE", (), renamed), Axis("SEX"))), "ann")
    assert cells(again)["a", "1"] == cells(answer)["young", "1"]
    assert cells(again)["b", "_T"] == cells(answer)["rest", "_T"]
    found = answer.noise_range(5, 0.9)
    assert found is not None
    assert found.low < answer.values[5] < found.high


@pytest.mark.parametrize(
    ("noise", "serve", "said"),
    [
        (GEOMETRIC, "axes = 3", "serve.account: is missing; noise with a law needs it"),
        (GEOMETRIC, "attribute = 0.5", "a rule on noisy counts together with a guarantee"),
        (GEOMETRIC, "history = { difference = 5 }", "a guard on history together with a guarantee"),
        (GEOMETRIC, "account = { each = 2, user = 1 }", "1 is below what one table costs"),
        (
            'kind = "geometric"\nepsilon = 400\n',
            "account = { each = 1, user = 1 }",
            "noise that is drawn again for every question",
        ),
        (
            GEOMETRIC,
            "account = { each = 1, user = 1 }\ncounted = 60_000_000",
            "60000000 is above limits.published",
        ),
    ],
)
def test_what_has_no_meaning_beside_a_guarantee_is_refused(
    make: Make, noise: str, serve: str, said: str
) -> None:
    with pytest.raises(Mistakes, match=said):
        make(noise, serve)


@BOTH_DATABASES
def test_a_guarantee_needs_a_ledger(census: Path, tmp_path: Path, store: Store) -> None:
    programme = declared(census, tmp_path / "c", GEOMETRIC, "account = { each = 1, user = 10 }")
    with pytest.raises(Mistakes, match="name a ledger"):
        serve_programme(programme, SECRET, store, register=Register.of(tmp_path / "register", SECRET))
    assert replace(programme.serve, account=None).account is None
    assert programme.serve.account == AccountRule(Fraction(1), Fraction(10))


@BOTH_DATABASES
def test_the_same_question_asked_many_times_at_once_is_charged_once(make: Make, ledger: Ledger) -> None:
    builder = make(GEOMETRIC, 'account = { each = "1/4", user = 5 }')
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: cells(builder.ask(query("EDU", "LOC"), "ann")), range(8)))
    assert all(one == found[0] for one in found)
    assert len(ledger.entries(account_of("ann"))) == 1
    assert ledger.verify() == ()


def test_what_is_paid_for_is_what_was_counted_and_not_its_name(
    census: Path, tmp_path: Path, store: Store, ledger: Ledger
) -> None:
    """After a codelist has changed, a table of the same name counts other things: it has other noise, and a price."""
    register = Register.of(tmp_path / "register", SECRET)
    first = declared(census, tmp_path / "c", GEOMETRIC, "account = { each = 1, user = 1000 }")
    asked = query("GEO.H", "SEX")
    builder = serve_programme(first, SECRET, store, ledger=ledger, register=register)
    before = cells(builder.ask(asked, "ann"))
    assert builder.preview(asked, "ann").cost == "nothing: you have it already"
    lists = next(path for path in (tmp_path / "c").rglob("*.csv") if "geo" in path.name.lower())
    lines = lists.read_text().splitlines()
    lists.write_text("\n".join([*lines, lines[-1].replace(lines[-1].split(",")[0], "unused", 1)]) + "\n")
    second = load_programme(tmp_path / "c/programme.toml")
    builder = serve_programme(second, SECRET, store, ledger=ledger, register=register)
    assert builder.preview(asked, "ann").cost != "nothing: you have it already"
    paid = spent(ledger, "ann")
    after = cells(builder.ask(asked, "ann"))
    assert spent(ledger, "ann") > paid
    assert sum(after.get(cell) == value for cell, value in before.items()) < 0.75 * len(before)
    assert builder.preview(query("SEX"), "ann").cost == "nothing: you have it already", "the same as before"


TOGETHER = 'account = { each = "1/4", user = 5, all = 6 }'


def spent_together(ledger: Ledger) -> Fraction:
    loss = ledger.spent(COMMON)
    assert isinstance(loss, EpsilonDelta)
    return loss.epsilon


def test_all_users_together_pay_once_for_what_any_of_them_has(make: Make, ledger: Ledger) -> None:
    builder = make(GEOMETRIC, TOGETHER)
    first = builder.ask(query("EDU", "LOC"), "ann")
    assert isinstance(first, Answer)
    assert spent_together(ledger) == spent(ledger, "ann")
    assert isinstance(builder.ask(query("EDU", "LOC"), "bob"), Answer)
    assert spent_together(ledger) == spent(ledger, "ann") == spent(ledger, "bob"), "the same values for both"
    assert isinstance(builder.ask(query("EDU", "HAR"), "bob"), Answer)
    assert spent_together(ledger) == spent(ledger, "bob") == spent(ledger, "ann") + 1
    assert ledger.verify() == ()
    assert (
        "epsilon = 5 at most, and all answers to all users together with epsilon = 6 at most" in first.noise
    )


def test_what_all_have_left_is_a_polite_refusal_that_charges_neither_account(
    make: Make, ledger: Ledger
) -> None:
    builder = make(GEOMETRIC, "account = { each = 1, user = 5, all = 5 }")
    assert isinstance(builder.ask(query("OCC"), "ann"), Answer)
    before = spent_together(ledger)
    filtered = query("OCC", where='SEX == "1"')
    while isinstance(found := builder.ask(filtered, "bob"), Answer):
        filtered = query("OCC", where='SEX == "2"')
    assert isinstance(found, Refusal)
    assert found.rule is Rule.BUDGET
    assert "is left of the privacy budget of all users together" in found.message
    assert spent_together(ledger) <= 5
    assert spent_together(ledger) >= before
    assert spent(ledger, "bob") == spent_together(ledger) - before, "no charge without the other"
    assert isinstance(builder.ask(query("OCC"), "ann"), Answer), "what anyone has stays available"
    assert isinstance(builder.ask(query("OCC"), "eve"), Answer), "and costs only her own budget"
    assert ledger.verify() == ()


@BOTH_DATABASES
def test_many_users_at_once_never_exceed_what_all_may_learn(make: Make, ledger: Ledger) -> None:
    """Eight users ask twelve tables each, all at once; the cap allows about half of them."""
    builder = make(GEOMETRIC, "account = { each = 1, user = 40, all = 8 }")
    wanted = [query(name, where=f'SEX == "{sex}"') for name in ("EDU", "LOC", "HAR") for sex in (1, 2)]

    def ask(number: int) -> list[bool]:
        order = wanted[number % 6 :] + wanted[: number % 6]
        return [isinstance(builder.ask(one, f"user {number}"), Answer) for one in order]

    with ThreadPoolExecutor(8) as pool:
        answered = list(pool.map(ask, range(8)))
    assert any(map(any, answered))
    assert not all(map(all, answered))
    assert spent_together(ledger) <= 8
    with ledger.database.reading() as connection:
        rows = connection.execute(select(_charged.c.owner, _charged.c.key)).all()
    everyone = {key for owner, key in rows if owner == EVERYONE}
    assert everyone == {key for owner, key in rows if owner != EVERYONE}, (
        "what any user has, and nothing else"
    )
    assert spent_together(ledger) == len(everyone), "each once, at 1"
    assert ledger.verify() == ()


def test_a_cap_that_comes_too_late_or_is_too_small_is_refused(make: Make) -> None:
    with pytest.raises(Mistakes, match=r"serve\.account\.all: 1/8 is below what one table costs"):
        make(GEOMETRIC, 'account = { each = "1/4", user = 5, all = "1/8" }')
    assert isinstance(
        make(GEOMETRIC, 'account = { each = "1/4", user = 5 }').ask(query("EDU"), "ann"), Answer
    )
    with pytest.raises(Mistakes, match="users were answered before it was declared"):
        make(GEOMETRIC, TOGETHER)


def test_a_refusal_for_the_budget_offers_what_can_be_paid(make: Make) -> None:
    builder = make(GEOMETRIC, "account = { each = 1, user = 5 }")
    large = query("OCC", "HAR", "LOC")
    refused = builder.ask(large, "u")
    assert isinstance(refused, Refusal)
    assert refused.rule is Rule.BUDGET
    shown = builder.with_nearest(builder.preview(large, "u"), "u")
    assert shown.refusal is not None
    assert shown.refusal.nearest == refused.nearest != ()
    for offer in refused.nearest:
        found = builder.preview(offer.query, "u")
        assert found.refusal is None
        assert found.balance is not None
        assert found.balance.price <= found.balance.left == 5, "looking at them costs nothing"
    assert isinstance(builder.ask(refused.nearest[0].query, "u"), Answer)
