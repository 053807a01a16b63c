"""Asking the table builder: the order in which a question is resolved, judged, charged, answered and remembered.

It owns that order; counting is the source's, judging the rules', books the store's and the ledger's.
"""

from __future__ import annotations

from discreet.engine.progress import Progress
from discreet.perturb.ledger import Ledger
from discreet.release.read import Release
from discreet.schema.programme import Programme
from discreet.schema.serve_rule import DEFAULT_SERVE, ServeRule
from discreet.serve.answer import Answer, Preview, Refusal
from discreet.serve.catalogue import Catalogue
from discreet.serve.query import Query
from discreet.serve.store import Store


class TableBuilder:
    """Answers questions; safe to use from several threads at once."""

    @property
    def catalogue(self) -> Catalogue:
        """What can be asked for."""
        raise NotImplementedError

    def canonical(self, query: Query) -> Query:
        """The normal form of a question: equal questions become equal but for the order of their axes.

        Unknown names and codes raise ``Mistakes`` that name the alternatives (a client error).
        """
        raise NotImplementedError

    def ask(self, query: Query, user: str, *, job: bool = False) -> Answer | Refusal:
        """Answer a question of a user (an opaque id), or refuse; a mistake in the question raises ``Mistakes``.

        ``job`` allows as many cells as background jobs may have. What is collected is remembered, and charged where the
        noise has a guarantee, before this returns.
        """
        raise NotImplementedError

    def preview(self, query: Query, user: str) -> Preview:
        """How large an answer would be, which areas it would withhold, whether it would be refused; free of charge."""
        raise NotImplementedError


def serve_programme(
    programme: Programme,
    secret: bytes,
    store: Store,
    *,
    ledger: Ledger | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> TableBuilder:
    """A table builder over the records of a programme: read once, swapped as in its release, held in memory.

    The rules are ``programme.serve``. Noise with a guarantee needs a ledger: each user has an account in it.
    """
    raise NotImplementedError


def serve_release(release: Release, store: Store, *, rule: ServeRule = DEFAULT_SERVE) -> TableBuilder:
    """A table builder over a release folder: no records, no secret, what it holds and nothing more."""
    raise NotImplementedError
