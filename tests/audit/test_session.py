"""A session against a real table builder: without rules it finds counts, with the default rules it does not."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.audit.session import Session, SessionFindings, attack_server, is_own
from discreet.errors import Mistakes
from discreet.programme.programme import Programme
from discreet.programme.serve import SAFE_HISTORY, HistoryRule, ServeRule
from discreet.report.findings import session_lines
from discreet.serve.http.app import create_app
from discreet.serve.jobs_store import Store
from discreet.serve.open import serve_programme
from tests.serve.conftest import NOON, SECRET, census, programme
from tests.serve.http.conftest import running, settings_in

__all__ = ["census", "programme"]
Attack = Callable[..., SessionFindings]
FAST = 1000.0


@pytest.fixture
def attack(programme: Programme, tmp_path: Path) -> Iterator[Attack]:
    """Attack a server with some rules."""
    with ExitStack() as opened:

        def made(rule: HistoryRule, **asked: object) -> SessionFindings:
            store = Store(tmp_path / "store.sqlite", lambda: NOON)
            builder = serve_programme(replace(programme, serve=ServeRule(history=rule)), SECRET, store)
            address = opened.enter_context(running(create_app(builder, settings_in(tmp_path))))
            session = Session(address=address, axes=("GEO.H", "SEX"), filtered="AGE", rate=FAST)
            return attack_server(replace(session, **asked))  # type: ignore[arg-type]

        yield made


def test_without_rules_counts_are_found(attack: Attack) -> None:
    found = attack(HistoryRule(), requests=101)
    assert (found.requests, found.answered, found.pairs) == (101, 101, 50)
    assert not found.refused
    assert found.declared is None
    assert found.variance == pytest.approx(2.0, rel=0.15), "estimated from the answers"
    assert found.success is not None
    assert found.success > 0.9
    assert "50 pairs" in "\n".join(session_lines("http://x", found))


def test_with_the_default_rules_the_session_ends_within_the_declared_risk(attack: Attack) -> None:
    found = attack(SAFE_HISTORY, requests=101, variance=2.0)
    assert found.answered < 20
    assert found.refused["history"] > 80
    assert found.declared == SAFE_HISTORY.success
    assert found.success is not None
    assert found.declared is not None
    assert found.success <= found.declared


def test_a_session_without_a_whole_pair_says_so_and_does_not_ask_for_the_variance(attack: Attack) -> None:
    found = replace(attack(HistoryRule(), requests=3), pairs=0, standard_error=None, success=None)
    lines = "\n".join(session_lines("http://x", found))
    assert "no pair was answered whole" in lines
    assert "--variance" not in lines


def test_a_session_chooses_its_table_and_stays_within_its_bounds(attack: Attack) -> None:
    found = attack(HistoryRule(), requests=6, axes=(), filtered="")
    assert found.requests <= 6
    assert found.answered == found.requests
    assert len(found.axes) == 2
    assert found.filtered not in {axis.partition(".")[0] for axis in found.axes}
    short = attack(HistoryRule(), requests=1000, seconds=0.01)
    assert short.requests <= 3


@pytest.mark.parametrize(
    ("address", "own"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://localhost", True),
        ("http://[::1]:80", True),
        ("https://tables.example.org", False),
        ("http://127.0.0.1.example.org", False),
        ("http://10.0.0.1", False),
    ],
)
def test_only_servers_of_this_machine_need_no_confirmation(address: str, own: bool) -> None:
    assert is_own(address) == own
    if not own:
        with pytest.raises(Mistakes, match="confirm it with --own-server"):
            attack_server(Session(address=address))


def test_no_server_is_a_mistake_in_one_line() -> None:
    with pytest.raises(Mistakes, match="start it with discreet serve") as found:
        attack_server(Session(address="http://127.0.0.1:9"))
    assert len(found.value.problems) == 1
