"""Noise with a law for tables that no programme foresaw: a parameter for any cross-tabulation, and what it costs.

A cross-tabulation that stands in a cube of the programme has the programme's parameter, so that its values are those of
the release; any other has ``serve.account.each``. It keeps no books (see budget).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil

from discreet.errors import mistake
from discreet.maths.accounting import EpsilonDelta, PrivacyLoss, Rho
from discreet.maths.laws import Law
from discreet.maths.row_laws import HellingerLaw
from discreet.maths.thresholds import ThresholdTable, row_table, threshold_table
from discreet.perturb.budget import ARITHMETIC, NoisePlan, law_of, reach, shares
from discreet.perturb.private import PrivateMechanism
from discreet.pipeline.spending import DELTA_UNITS
from discreet.schema.crosstab import Signature, signatures
from discreet.schema.cube import Cube
from discreet.schema.noise import PrivateNoise
from discreet.schema.programme import Programme
from discreet.schema.serve_rule import AccountRule
from discreet.serve.grouping import tree_of
from discreet.words.phrase import Phrase, phrase


class PrivateTables:
    """The mechanism of any table: the same key as the release, the same parameter for the same cross-tabulation."""

    def __init__(self, programme: Programme, released: PrivateMechanism) -> None:
        account = programme.serve.account
        if account is None:
            remedy = "add what a cross-tabulation costs and what a user may spend: { each = 0.1, user = 5 }"
            raise mistake(programme.path, "serve.account", "is missing beside noise with a law", remedy)
        self._released, self.account = released, account
        self._shares = shares(released.rule.budget, programme.cubes)
        self._table = lru_cache(maxsize=256)(self._made_table)
        self._delta = lru_cache(maxsize=256)(self._certified)

    @property
    def rule(self) -> PrivateNoise:
        """The declared noise."""
        return self._released.rule

    @cached_property
    def budget(self) -> PrivacyLoss:
        """What one user may spend; its delta is the declared one, or what is rounding."""
        if self.rule.is_gaussian:
            return Rho(self.account.user)
        return EpsilonDelta(self.account.user, max(self.rule.delta, ARITHMETIC))

    def mechanism(self, cube: Cube) -> PrivateMechanism:
        """The noise of every cross-tabulation of a cube."""
        parameters = {signature: self.parameter(signature) for signature in signatures([cube])}
        tables = {parameter: self._table(parameter) for parameter in set(parameters.values())}
        trees = {axis.variable: tree_of(axis) for axis in cube.axes if "~" in axis.variable}
        codelists = {**self._released.codelists, **trees}
        return replace(self._released, plan=NoisePlan(self.rule, parameters, tables), codelists=codelists)

    def parameter(self, signature: Signature) -> Fraction:
        """The noise parameter of a cross-tabulation: its share, divided by what one record reaches."""
        touched = reach(signature.unit, self.rule)
        return self.share(signature) / (touched.l2_squared if self.rule.is_gaussian else touched.l1)

    def share(self, signature: Signature) -> Fraction:
        """The epsilon or rho that a cross-tabulation costs."""
        return self._shares.get(signature, self.account.each)

    def law(self, signature: Signature) -> Law:
        """The law of the noise of a cross-tabulation, which is public."""
        return law_of(self.rule, self.parameter(signature))

    def loss(self, wanted: tuple[Signature, ...]) -> PrivacyLoss:
        """What some cross-tabulations cost together: their shares and certified deltas add up (basic composition)."""
        total = sum((self.share(signature) for signature in wanted), Fraction(0))
        if self.rule.is_gaussian:
            return Rho(total)
        deltas = (self._delta(signature.unit, self.parameter(signature)) for signature in wanted)
        return EpsilonDelta(total, Fraction(ceil(sum(deltas, Fraction(0)) * DELTA_UNITS), DELTA_UNITS))

    def _certified(self, unit: str, parameter: Fraction) -> Fraction:
        """The delta of one cross-tabulation, as a release of it alone would state it."""
        one: Mapping[Signature, Fraction] = {Signature(unit, "", "", ()): parameter}
        return NoisePlan(self.rule, one, {parameter: self._table(parameter)}).delta()

    def _made_table(self, parameter: Fraction) -> ThresholdTable:
        law = law_of(self.rule, parameter)
        return row_table(law, 0) if isinstance(law, HellingerLaw) else threshold_table(law)


def account_words(rule: PrivateNoise, account: AccountRule) -> Phrase:
    """What the public is told of the guarantee of a table builder."""
    name = "rho" if rule.is_gaussian else "epsilon"
    return phrase(
        "All answers to one user together are differentially private with {all} at most; each new cross-tabulation "
        "costs {each}, one that stands in the release what it cost there.",
        all=f"{name} = {account.user}",
        each=f"{name} = {account.each}",
    )
