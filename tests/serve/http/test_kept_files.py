"""Finished files that are kept: sent again to those who may have them, forgotten when there are too many."""

from collections.abc import Callable
from pathlib import Path

from discreet.programme.serve import HistoryRule
from discreet.serve.answer import Answer, Refusal
from discreet.serve.builder import AtOnce
from discreet.serve.http.downloads import FILE_OVERHEAD, File, file_cache
from discreet.serve.http.tokens import Role, create_token
from discreet.serve.open import TableBuilder
from discreet.serve.query import Query
from tests.serve.http.conftest import Web
from tests.serve.http.test_security import bearer

Ruled = Callable[..., TableBuilder]


class Counted:
    """A builder that counts who asks it."""

    def __init__(self, builder: TableBuilder) -> None:
        self.catalogue, self.prepare, self._builder = builder.catalogue, builder.prepare, builder
        self.seconds = builder.seconds
        self.users: list[str] = []

    def ask(self, query: Query, user: str, *, job: bool = False) -> Answer | Refusal:
        self.users.append(user)
        return self._builder.ask(query, user, job=job)

    def ask_at_once(self, query: Query, user: str) -> AtOnce | None:
        found = self._builder.ask_at_once(query, user)
        self.users += [] if found is None else [user]
        return found


def asked(web: Web, builder: Counted, folder: Path) -> list[str]:
    """Two users ask the same twice, in two formats; who got as far as the builder."""
    tokens = {name: create_token(folder / "t.json", name, Role.PUBLIC, "") for name in ("ann", "bob")}
    client = web(builder, tokens=folder / "t.json")
    for token in tokens.values():
        for form in ("csv", "json-stat", "csv"):
            answer = client.post(
                "/api/v1/table", params={"format": form}, json={"axes": ["SEX"]}, headers=bearer(token)
            )
            assert answer.status_code == 200
    return builder.users


def test_a_table_is_made_once_for_everybody_where_no_books_are_kept(
    web: Web, ruled: Ruled, tmp_path: Path
) -> None:
    assert asked(web, Counted(ruled()), tmp_path) == ["token:ann"] * 2


def test_where_books_are_kept_each_user_gets_as_far_as_the_books_once(
    web: Web, ruled: Ruled, tmp_path: Path
) -> None:
    rule = HistoryRule(warn=0.9)
    assert asked(web, Counted(ruled(history=rule)), tmp_path) == ["token:ann"] * 2 + ["token:bob"] * 2


def test_a_refusal_is_never_kept(web: Web, ruled: Ruled) -> None:
    builder = Counted(ruled(axes=1))
    client = web(builder)
    statuses = [client.post("/api/v1/table", json={"axes": ["SEX", "EDU"]}).status_code for _ in range(3)]
    assert (statuses, len(builder.users)) == ([403] * 3, 3)


def test_the_least_lately_used_files_are_forgotten_and_large_ones_not_kept() -> None:
    kept = file_cache(8 * (FILE_OVERHEAD + 100))
    file = File(b"x" * 100, "text/plain", "txt")
    for number in range(8):
        kept.put(number, file)
    assert kept.get(0) is file
    kept.put(8, file)
    assert kept.get(0) is file
    assert kept.get(1) is None
    kept.put(8, file)
    assert kept.get(2) is file, "the same file again takes no more room"
    kept.put("large", File(b"x" * 200, "text/plain", "txt"))
    assert kept.get("large") is None
