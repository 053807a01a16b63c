"""The noise of a release as one value: what it is, what the public may know of it, and sentences that describe it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, sqrt

from discreet.errors import mistake
from discreet.maths.noise.additive import Law, LawKind
from discreet.maths.noise.exponential import UtilityTable
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.law import UNSETTLED
from discreet.maths.noise.named import measure_of
from discreet.maths.noise.publishing import UNCHANGED, PublishedLaw, Publishing
from discreet.maths.privacy.accounting import Neighbours, epsilon_of_drawn_rho, float_above, rounded_up
from discreet.maths.privacy.composition import Composition
from discreet.programme.cube import Signature
from discreet.programme.hierarchical import ROOT, HierarchyRule
from discreet.programme.noise import Draw, KeptZeros, Protects, Split
from discreet.programme.population import SampleMethod
from discreet.programme.release import Disclosure
from discreet.text.phrase import Phrase, joined, phrase

LARGE = 1000  # a count that has the noise of large counts
LEAST_LISTED = 2.0**-64  # changes that are less probable are not listed
STATED_DIGITS = 6  # of an amplified epsilon in a sentence, rounded up
MOST_LISTED = 5000  # changes of a law that is written out
ADJUSTED = "the counts were adjusted so that totals add up"
NO_LAW = "no law of noise describes an adjusted count; use a release without consistent = true"


@dataclass(frozen=True, kw_only=True)
class NoiseBudget:
    """The epsilon or rho of a whole release, and how it is divided over its cross-tabulations."""

    total: Fraction
    split: Split
    cross_tabulations: int
    neighbours: Neighbours
    unit: Protects
    spent: Fraction | None = None  # where the shares leave a part of the total
    shares: Mapping[str, Fraction] = field(
        default_factory=dict
    )  # as declared: number of axes, name, .. -> share


@dataclass(frozen=True)
class SumOf:
    """A cross-tabulation whose cells are sums of the published cells of a finer one, of at most so many."""

    finest: str  # signature of the finer one
    cells: int


@dataclass(frozen=True)
class WeightNoise:
    """Sums of weights: each weight is at most ``largest``; noise is a whole number of units."""

    largest: Fraction
    unit: Fraction


@dataclass(frozen=True)
class ScaledWeights:
    """Sums of weights under the cell key method: their own noise reaches so many largest weights of the cell.

    The law is in ``perturb.weights``; without it (releases of format 1 by version 0.1) a sum is the published count
    times the exact mean weight.
    """

    reach: float | None  # None where that is not disclosed


@dataclass(frozen=True, kw_only=True)
class Amplified:
    """What a guarantee means for the population that a secret sample was drawn from (maths.privacy.amplification)."""

    method: SampleMethod
    rate: Fraction
    unit: str
    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """Differential privacy: (epsilon, delta), or rho of zCDP, whose delta is that of the epsilon it is stated with.

    Of a table builder it is what one user can spend, and ``each`` what a new cross-tabulation costs.
    """

    neighbours: Neighbours
    unit: Protects
    largest_household: int | None = None
    fixed: tuple[str, ...] = ()  # variables that count as unchanged for all who stay
    fixed_families: bool = False
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction = Fraction(0)
    composition: Composition = Composition.BASIC  # of the cross-tabulations
    distance: Fraction = Fraction(
        0
    )  # total variation between what is drawn and the noise that rho is that of
    each: Fraction | None = None
    sample: Amplified | None = None
    together: Fraction | None = None  # of a table builder: what all its users can learn together

    def sentence(self) -> Phrase:
        """The guarantee as a translatable sentence."""
        if self.each is not None:
            name, total = ("epsilon", self.epsilon) if self.rho is None else ("rho", self.rho)
            user = (
                phrase(
                    "All answers to one user together are differentially private with {all} at most, and all answers "
                    "to all users together with {together} at most; each new cross-tabulation costs {each}, one that "
                    "is in the release what it cost there.",
                    all=f"{name} = {total}",
                    together=f"{name} = {self.together}",
                    each=f"{name} = {self.each}",
                )
                if self.together is not None
                else phrase(
                    "All answers to one user together are differentially private with {all} at most; each new "
                    "cross-tabulation costs {each}, one that is in the release what it cost there.",
                    all=f"{name} = {total}",
                    each=f"{name} = {self.each}",
                )
            )
            return joined(user, phrase("It holds when {change}.", change=self._change()), self._unchanged())
        whole = phrase(
            "The whole release is differentially private with {budget}, when {change}.",
            budget=self.loss(),
            change=self._change(),
        )
        sampled = (self._sampled(self.sample),) if self.sample else ()
        return joined(whole, *self._composed(), self._unchanged(), *sampled)

    def _composed(self) -> tuple[Phrase, ...]:
        match self.composition:
            case Composition.ADVANCED:
                return (phrase("The losses of its cross-tabulations are composed by advanced composition."),)
            case Composition.PLD:
                return (
                    phrase("The losses of its cross-tabulations are composed by privacy-loss distributions."),
                )
        return ()

    def _sampled(self, sample: Amplified) -> Phrase:
        return phrase(
            "That is for the sample. For the population that it was drawn from ({method}, {rate} of the {unit}) it is "
            "epsilon = {epsilon} and delta = {delta}, as long as it stays secret who was sampled.",
            method=sample.method.value,
            rate=sample.rate,
            unit=sample.unit,
            epsilon=float_above(rounded_up(sample.epsilon, STATED_DIGITS)),
            delta=float(f"{float(sample.delta):.3g}"),
        )

    def figures(self) -> dict[str, float]:
        """Its numbers: epsilon and delta, or rho, with an epsilon only where a delta is declared."""
        if self.rho is None:
            return {"epsilon": float(self.epsilon or 0), "delta": float(self.delta)}
        stated = {"rho": float(self.rho)}
        return {**stated, "epsilon": self._epsilon(), "delta": float(self.delta)} if self.delta else stated

    def _epsilon(self) -> float:
        if self.rho is None:
            return float(self.epsilon or 0)
        return epsilon_of_drawn_rho(self.rho, self.delta, self.distance)

    def loss(self) -> Phrase:
        """The privacy loss; that of rho is stated in rho, and in epsilon only for a declared delta."""
        if self.rho is not None and not self.delta:
            return phrase("rho = {rho} (zero-concentrated)", rho=self.rho)
        epsilon = self._epsilon()
        delta = float(f"{float(self.delta):.3g}")
        approximate = phrase("epsilon = {epsilon} and delta = {delta}", epsilon=epsilon, delta=delta)
        if self.rho is None:
            return approximate
        return phrase(
            "rho = {rho} (zero-concentrated), that is {approximate}", rho=self.rho, approximate=approximate
        )

    def _change(self) -> Phrase:
        """In what neighbouring populations differ."""
        added, most = self.neighbours is Neighbours.ADD_REMOVE, self.largest_household
        if self.unit is Protects.PERSON and most is None:
            added_person = phrase("one person is added or removed")
            return added_person if added else phrase("one person is replaced by another")
        if self.unit is Protects.PERSON and added:
            return phrase(
                "one person is added to or removed from a household of at most {most} members", most=most
            )
        if self.unit is Protects.PERSON:
            return phrase(
                "one person is replaced by another, in households of at most {most} members", most=most
            )
        if added:
            return phrase("one household of at most {most} members is added or removed", most=most)
        return phrase("one household of at most {most} members is replaced by another", most=most)

    def _unchanged(self) -> Phrase:
        """What neighbouring populations have in common by definition, whatever else follows from the change."""
        said = []
        if self.fixed:
            said.append(
                phrase("Unchanged for everyone else, by definition: {variables}.", variables=self.fixed)
            )
        if self.fixed_families:
            said.append(phrase("By definition no one else changes family."))
        return joined(*said)


@dataclass(frozen=True, kw_only=True, eq=False)
class Noise:
    """What is known of a noise: all of it, its variance and a bound, or its kind only (``disclosed``).

    The office's noise and the public's are the same type: ``public`` leaves out what the public must not know.
    """

    kind: LawKind
    drawing: Draw
    zeros: KeptZeros
    disclosed: Disclosure = Disclosure.LAW
    variance: float | None = None  # of any cell at most this
    bound: int | None = None  # no change is larger; None where that is not disclosed, or unbounded
    utility: UtilityTable | None = None  # of the exponential mechanism
    law: Law | None = None  # of the count before it is post-processed, by true count
    laws: Mapping[str, Law] = field(
        default_factory=dict
    )  # of cross-tabulations that have another, by signature
    publishing: Publishing = UNCHANGED
    sums: Mapping[str, SumOf] = field(default_factory=dict)  # signature -> what its cells add up
    totals: Mapping[str, int] = field(default_factory=dict)  # unit -> a public total, published without noise
    weights: WeightNoise | None = None  # where cubes have weights
    weighted: ScaledWeights | None = None  # the same under the cell key method
    budget: NoiseBudget | None = None
    guarantee: Guarantee | None = None
    adjusted: bool = False  # whether counts were fitted to each other afterwards, so that totals add up
    hierarchy: HierarchyRule | None = None  # where marginals of a tree of areas were measured
    _published: dict[Law, PublishedLaw] = field(default_factory=dict, init=False, repr=False)

    @property
    def same_noise(self) -> bool:
        """Whether the same participants have the same noise wherever they are counted."""
        return self.drawing is Draw.PARTICIPANTS

    @property
    def keeps_zeros(self) -> bool:
        """Whether an empty cell is published as empty."""
        return self.zeros is KeptZeros.ALL

    @property
    def is_open(self) -> bool:
        """Whether the law is public whatever the release's rule: noise that can have a guarantee hides nothing."""
        return self.kind is not LawKind.CELL_KEY

    def law_of(self, signature: Signature) -> Law:
        """The law of a cross-tabulation's cells; raised as a mistake where it is not public."""
        name = str(signature) if self.sums or self.laws else ""
        if name in self.sums or self._is_fixed(signature):
            value = f"{signature} has no noise of its own"
            raise mistake("", "noise", value, "use the cells that it adds up; a public total is exact")
        law = self.laws.get(name, self.law)
        if law is None:
            self._refuse_adjusted()
            remedy = "give the p-table or the private side, or attack what needs no law"
            raise mistake("", "noise", "its law is not public", remedy)
        return law

    def variance_of(self, signature: Signature) -> float:
        """The variance of a cell of a cross-tabulation, at most; that of a sum grows with the cells it adds up."""
        if self._is_fixed(signature):
            return 0.0
        if (added := self.sums.get(str(signature))) is not None:
            return self.variance_of_sum(added)
        if self.law is not None:
            return self.law_of(signature).row(LARGE).variance
        if self.variance is None:
            self._refuse_adjusted()
            remedy = "give it with --variance, or attack what needs none"
            raise mistake("", "noise", "its variance is not public", remedy)
        return self.variance

    def variance_of_sum(self, added: SumOf) -> float:
        """The variance of a sum of independent noises: that of one cell times their number, at most."""
        law = self.laws.get(added.finest, self.law)
        if law is None:
            raise mistake("", "noise", "its law is not public", "give the private side")
        return added.cells * law.row(LARGE).variance

    def _is_fixed(self, signature: Signature) -> bool:
        whole = not (signature.base or signature.count or signature.levels or signature.weight)
        return whole and signature.unit in self.totals

    def _refuse_adjusted(self) -> None:
        if self.adjusted:
            raise mistake("", "noise", ADJUSTED, NO_LAW)

    def of_adjusted(self) -> Noise:
        """What is known of counts that were adjusted: not the law, which is that of the counts before."""
        return replace(self, adjusted=True, law=None, laws={}, variance=None, bound=None)

    def published(self, law: Law) -> PublishedLaw:
        """The law of the published counts of a law of this noise, each made once."""
        if (known := self._published.get(law)) is None:
            known = self._published[law] = PublishedLaw(law, self.publishing, self.keeps_zeros)
        return known

    def published_of(self, signature: Signature) -> PublishedLaw:
        """The law of a cross-tabulation's published counts."""
        return self.published(self.law_of(signature))

    @property
    def _every(self) -> tuple[PublishedLaw, ...]:
        """The laws of published counts, of all cross-tabulations; none where they are not known."""
        return tuple(self.published(law) for law in dict.fromkeys((self.law, *self.laws.values())) if law)

    @property
    def spread(self) -> float | None:
        """The standard error of a large published count, of no cross-tabulation more; None where it is not known."""
        if self._every:
            return sqrt(_mean_square(self.widest, LARGE))
        return None if self.variance is None else sqrt(self.variance)

    @property
    def widest(self) -> PublishedLaw:
        """The law with the largest error, of those that are known."""
        return max(self._every, key=lambda law: _mean_square(law, LARGE))

    @property
    def has_one_law(self) -> bool:
        """Whether one known law is that of all published counts, so that its error is exact and not a limit."""
        return len(self._every) == 1 and not self.sums

    @property
    def listed_if_empty(self) -> float | None:
        """The probability that an empty cell is published as another number, at most; None where it is not known."""
        if self.keeps_zeros:
            return 0.0
        return max((1 - law.row(0).at(0) for law in self._every), default=None)

    @property
    def mean_if_empty(self) -> float | None:
        """What is published for an empty cell on average, at most; more than 0 where negative counts become zero."""
        if self.keeps_zeros:
            return 0.0
        return max((law.row(0).mean for law in self._every), default=None)

    @property
    def hides_presence(self) -> bool:
        """Whether every published count is possible for an empty cell: noise without a bound that moves zeros too."""
        return not self.keeps_zeros and self.bound is None and not self.totals

    def public(self, disclose: Disclosure) -> Noise:
        """What the disclosure rule lets the public know; a variance and a bound are rounded up."""
        if self.is_open or disclose is Disclosure.LAW:
            return self
        rounded = disclose is Disclosure.VARIANCE
        return Noise(
            kind=self.kind,
            drawing=self.drawing,
            zeros=self.zeros,
            disclosed=disclose,
            variance=_rough_variance(self.variance) if rounded else None,
            bound=_rough_bound(self.bound) if rounded else None,
            weighted=None
            if self.weighted is None
            else ScaledWeights(_rough_variance(self.weighted.reach) if rounded else None),
        )

    def knowing(self, law: PTableLaw) -> Noise:
        """The same noise for an attacker who has learnt its p-table."""
        return replace(
            self,
            disclosed=Disclosure.LAW,
            variance=largest_variance(law),
            bound=law.ptable.reach,
            law=law,
            laws={},
            weighted=None if self.weighted is None else ScaledWeights(sqrt(3 * largest_variance(law))),
        )

    @property
    def js(self) -> int | None:
        """Of the cell key method: counts 1..js are never published; None where that is not disclosed."""
        return self.law.ptable.smallest_positive - 1 if isinstance(self.law, PTableLaw) else None

    def listed(self) -> tuple[dict[int, float], ...]:
        """For each true count the probability of each change, the last for all larger counts; none if too long."""
        if self.law is None:
            return ()
        last = 0 if self.law.settled == UNSETTLED else self.law.settled
        rows = [self.law.row(count).shifted(-count) for count in range(last + 1)]
        found = [
            {
                change: p
                for change, p in zip(row.values.tolist(), row.p.tolist(), strict=True)
                if p > LEAST_LISTED
            }
            for row in rows
        ]
        return tuple(found) if max(map(len, found)) < MOST_LISTED else ()

    @property
    def method(self) -> Phrase:
        """The name of the method."""
        if self.kind is LawKind.CELL_KEY:
            return phrase("the cell key method")
        if self.hierarchy is not None:
            return phrase(
                "{kind} noise in marginals at every level of {geography}",
                kind=self.kind.value,
                geography=self.hierarchy.geography,
            )
        return phrase("{kind} noise in every cell", kind=self.kind.value)

    def parameters(self) -> Iterator[tuple[str, int | float | str]]:
        """The names and values of all parameters, as text; none where they are not disclosed."""
        if self.kind is LawKind.CELL_KEY:
            cell_key = {"D": self.bound, "V": self.variance, "js": self.js}
            yield from ((name, value) for name, value in cell_key.items() if value is not None and self.law)
            return
        if self.hierarchy is not None:
            yield from self._hierarchical(self.hierarchy)
            return
        if self.bound is not None:
            yield "bound", self.bound
        if self.utility is not None:
            yield "utility", str(self.utility)
        yield "draw", self.drawing.value
        yield "keep_zeros", self.zeros.value
        yield "negatives", self.publishing.negatives.value
        yield "rounding", self.publishing.rounding
        yield "threshold", self.publishing.threshold
        if self.budget is not None:
            amounts = {str(law.parameter) for law in (self.law, *self.laws.values()) if law is not None}
            yield measure_of(self.kind), str(self.budget.total)
            yield "split", self.budget.split.value
            if self.budget.spent is not None:
                yield phrase("spent"), str(self.budget.spent)
            yield phrase("cross-tabulations"), self.budget.cross_tabulations
            yield phrase("noise per cross-tabulation"), ", ".join(sorted(amounts))
            yield "neighbours", self.budget.neighbours.value
            yield "protects", self.budget.unit.value

    def _hierarchical(self, rule: HierarchyRule) -> Iterator[tuple[str, int | float | str]]:
        yield measure_of(self.kind), str(rule.strategy.budget)
        yield (
            "strategy",
            rule.name or ", ".join(f"{one.level} {one.share}" for one in rule.strategy.levels if one.share),
        )
        yield "fit", rule.fit
        if self.guarantee is not None:
            yield "neighbours", self.guarantee.neighbours.value
            yield "protects", self.guarantee.unit.value

    def sentence(self) -> Phrase:
        """The noise in a few translatable sentences."""
        sentences = [phrase("Counts are perturbed by {method}.", method=self.method)]
        if self.disclosed is Disclosure.LAW:
            listed = tuple(joined(name, f"= {value}") for name, value in sorted(self.parameters()))
            sentences.append(phrase("Its parameters are {parameters}.", parameters=listed))
        elif self.variance is not None:
            sentences.append(
                phrase(
                    "The noise has a mean of zero and a variance of at most {variance}.",
                    variance=self.variance,
                )
            )
        if self.disclosed is not Disclosure.LAW and self.bound is not None:
            bound = phrase("at most {bound}", bound=self.bound)
            sentences.append(
                phrase("A published count differs from the count before noise by {bound}.", bound=bound)
            )
        if self.hierarchy is not None:
            sentences.append(
                phrase(
                    "Published counts are whole numbers of at least 0 that are fitted to all noisy marginals, so that "
                    "all totals add up; intervals come from the estimates, not from these counts."
                )
            )
        elif self.adjusted:
            sentences.append(
                phrase(
                    "The perturbed counts were then adjusted to each other, so that all totals add up: what is stated "
                    "of the noise holds for the counts before that."
                )
            )
        return joined(*sentences, *self._exceptions(), self.guarantee.sentence() if self.guarantee else "")

    def _exceptions(self) -> Iterator[Phrase]:
        """What has no noise of its own, and what noise on weights means."""
        if self.hierarchy is not None and self.hierarchy.totals:
            yield _exact_totals(self.hierarchy.totals)
        if self.hierarchy is not None and self.hierarchy.bounds is not None:
            yield phrase(
                "Public bounds of {query} hold in every area: the guarantee is for populations that agree in them.",
                query=self.hierarchy.bounds.query,
            )
        for unit, total in sorted(self.totals.items()):
            yield phrase(
                "The total of {unit}, {total}, is public knowledge: it is published exactly, and not protected.",
                unit=unit,
                total=total,
            )
        if self.sums:
            yield phrase(
                "{number} of the published cross-tabulations are sums of published cells: the variance of such a sum "
                "is that of one cell times the number of cells.",
                number=len(self.sums),
            )
        if self.weights is not None:
            yield phrase(
                "Sums of weights have noise in units of {unit}, for weights of at most {largest}.",
                unit=self.weights.unit,
                largest=self.weights.largest,
            )
        if self.weighted is not None:
            yield phrase(
                "A weighted sum is perturbed by the noise of its count times the mean weight of the cell, and by a "
                "noise of its own that is scaled by the largest weight in the cell."
            )


def _exact_totals(levels: tuple[str, ...]) -> Phrase:
    """Which totals of a hierarchical release have no noise; the first level is the whole, which readers do not name."""
    below = tuple(level for level in levels if level != ROOT)
    if ROOT not in levels:
        return phrase(
            "The totals of {levels} are published exactly, and not protected: the guarantee is for populations that "
            "agree in them.",
            levels=below,
        )
    if not below:
        return phrase(
            "The overall total is published exactly, and not protected: the guarantee is for populations that agree "
            "in it."
        )
    return phrase(
        "The overall total and the totals of {levels} are published exactly, and not protected: the guarantee is for "
        "populations that agree in them.",
        levels=below,
    )


def cell_key_noise(
    law: PTableLaw | None = None,
    *,
    variance: float | None = None,
    bound: int | None = None,
    disclosed: Disclosure = Disclosure.LAW,
    weighted: ScaledWeights | None = None,
) -> Noise:
    """The noise of the cell key method: the same participants have the same noise, and zeros stay zero."""
    return Noise(
        kind=LawKind.CELL_KEY,
        drawing=Draw.PARTICIPANTS,
        zeros=KeptZeros.ALL,
        disclosed=disclosed,
        variance=variance,
        bound=bound,
        law=law,
        weighted=weighted,
    )


def _mean_square(law: PublishedLaw, count: int) -> float:
    """The mean square of the change of a count."""
    row = law.row(count)
    return float(row.p @ (row.values - count) ** 2)


def largest_variance(law: PTableLaw) -> float:
    """The largest variance of any row of a p-table."""
    return max(law.ptable.variance(row) for row in range(law.ptable.last_row + 1))


def _rough_variance(variance: float | None) -> float | None:
    """Round up to one decimal: the last digits of a computed variance would reveal its parameters."""
    return None if variance is None else ceil(round(variance * 10, 4)) / 10


def _rough_bound(bound: int | None) -> int | None:
    """A bound that is true but helps no attacker: the exact one is rounded up to a multiple of ten."""
    return None if bound is None else max(10, -(-bound // 10) * 10)
