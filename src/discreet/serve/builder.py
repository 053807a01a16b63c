"""Asking the table builder: the order in which a question is resolved, judged, charged, answered and remembered.

It owns that order; counting is the source's, judging the rules', books the store's and the ledger's.
"""

from __future__ import annotations

from dataclasses import replace

from discreet.errors import Mistakes
from discreet.perturb.table import ProtectedTable
from discreet.serve.answer import Answer, Preview, Refusal, Rule
from discreet.serve.answer_making import answer_of
from discreet.serve.budget import Accounts
from discreet.serve.catalogue import Catalogue
from discreet.serve.collected import Collected
from discreet.serve.collecting import Collecting
from discreet.serve.history import Differing, History
from discreet.serve.nearest import nearest
from discreet.serve.query import Query
from discreet.serve.question import Question, resolve
from discreet.serve.rules import Verdict, judge_cells, judge_form
from discreet.serve.sources import TableSource


class TableBuilder:
    """Answers questions; safe to use from several threads at once."""

    def __init__(self, source: TableSource, history: History, accounts: Accounts | None = None) -> None:
        self._source, self._history, self._accounts = source, history, accounts

    @property
    def catalogue(self) -> Catalogue:
        """What can be asked for."""
        return self._source.catalogue

    def prepare(self) -> None:
        """Do now what would make first questions slow: for a thread beside the server's, or before it answers."""
        self._source.prepare()
        for unit in self.catalogue.units[:1]:  # an answer to nobody: the first one waits for compiled code
            total = resolve(Query(unit, ()), self.catalogue)
            if not self._source.lacks(total.cube):
                answer_of(total, self._source.table(total.cube), Verdict(), (), self._source)

    def canonical(self, query: Query) -> Query:
        """The normal form of a question: equal questions become equal but for the order of their axes.

        Unknown names and codes raise ``Mistakes`` that name the alternatives (a client error).
        """
        return resolve(query, self.catalogue).query

    def ask(self, query: Query, user: str, *, job: bool = False) -> Answer | Refusal:
        """Answer a question of a user (an opaque id), or refuse; a mistake in the question raises ``Mistakes``.

        ``job`` allows as many cells as background jobs may have. What is collected is remembered, and charged where the
        noise has a guarantee, before this returns.
        """
        question = resolve(query, self.catalogue)
        verdict = self._verdict(question, job=job)
        if verdict.refusal is not None:
            return self._with_nearest(verdict.refusal, question)
        if self._accounts is not None:
            refusal = self._accounts.charge(user, question.cube)
            if refusal is not None:
                return refusal
        table = self._source.table(question.cube)
        judged = (
            self._history.collect(user, *self._collecting(question, table)) if self._history.is_kept else ()
        )
        if isinstance(judged, Refusal):
            return self._with_nearest(judged, question)
        return answer_of(question, table, verdict, judged, self._source)

    def preview(self, query: Query, user: str) -> Preview:
        """How large an answer would be, which areas it would withhold, whether it would be refused; free of charge."""
        question = resolve(query, self.catalogue)
        needs_job = question.cells > self.catalogue.rule.cells
        verdict = self._verdict(question, job=needs_job)
        refusal = verdict.refusal
        if refusal is None and self._accounts is None and self._history.is_kept:
            table = self._source.table(question.cube)
            judged = self._history.look(user, *self._collecting(question, table))
            refusal = judged if isinstance(judged, Refusal) else None
        found = Preview(question.query, question.cells, needs_job, verdict.areas, verdict.blocked, refusal)
        if self._accounts is None or refusal is not None:
            return found
        cost = self._accounts.cost(user, question.cube)
        return replace(found, cost=cost, balance=self._accounts.balance(user, question.cube))

    def with_nearest(self, preview: Preview) -> Preview:
        """A preview that tells which tables would pass where it is refused; it takes as long as to judge them."""
        if preview.refusal is None:
            return preview
        question = resolve(preview.query, self.catalogue)
        return replace(preview, refusal=self._with_nearest(preview.refusal, question))

    def _verdict(self, question: Question, *, job: bool) -> Verdict:
        """What the rules say; protected values are looked at only where a rule asks for it."""
        refusal = judge_form(question, self.catalogue, job=job)
        if refusal is not None:
            return Verdict(refusal)
        lacking = self._source.lacks(question.cube)
        if not lacking and question.judged is not question.cube:
            lacking = self._source.lacks(question.judged)
        if lacking:
            return Verdict(Refusal(Rule.NOT_PUBLISHED, lacking))
        rule = self.catalogue.rule
        if not rule.looks_at_cells:
            return Verdict()
        return judge_cells(question, self._source.table, rule)

    def _with_nearest(self, refusal: Refusal, question: Question) -> Refusal:
        def passes(query: Query) -> bool:
            try:
                return self._verdict(resolve(query, self.catalogue), job=False).refusal is None
            except Mistakes:
                return False

        return replace(refusal, nearest=nearest(question.query, self.catalogue, passes))

    def _collecting(self, question: Question, table: ProtectedTable) -> tuple[Collected, Differing]:
        collecting = Collecting(self._source, question)
        return collecting.collected(table), collecting.differing
