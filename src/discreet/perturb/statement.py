"""What a release says of its noise in public; it owns the wording and what is held back, not the noise itself."""

from __future__ import annotations

from math import ceil

from pydantic import BaseModel, ConfigDict

from discreet.perturb.mechanism import NoiseFacts
from discreet.programme.release import Disclosure
from discreet.text.phrase import Phrase, joined, phrase
from discreet.text.recognise import recognised

Parameter = int | float | str


class NoiseStatement(BaseModel):
    """The public words on the noise; fields that the disclosure rule holds back are empty."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: str
    kind: str  # the word of programme files: cell-key, geometric, ..
    disclose: Disclosure
    variance: float | None = None  # at most this
    bound: str | None = None
    parameters: dict[str, Parameter] | None = None
    law: tuple[dict[int, float], ...] | None = None  # true count -> change -> probability
    law_parameter: str | None = None  # the epsilon or rho of a cell with this law
    other_laws: dict[str, str] | None = None  # cross-tabulation -> parameter, where it has another law
    guarantee: str | None = None

    def sentence(self) -> Phrase:
        """The statement in one or two plain sentences, which every language has."""
        method, bound = recognised(self.method), recognised(self.bound or "")
        said = [phrase("Counts are perturbed by {method}.", method=method)]
        if self.parameters is not None:
            listed = tuple(
                joined(recognised(name), f"= {value}") for name, value in sorted(self.parameters.items())
            )
            said.append(phrase("Its parameters are {parameters}.", parameters=listed))
        elif self.variance is not None:
            said.append(
                phrase(
                    "The noise has a mean of zero and a variance of at most {variance}.",
                    variance=self.variance,
                )
            )
        if bound:
            said.append(
                phrase("A published count differs from the count before noise by {bound}.", bound=bound)
            )
        return joined(*said, recognised(self.guarantee or ""))


def noise_statement(facts: NoiseFacts, disclose: Disclosure) -> NoiseStatement:
    """Keep of the facts what the disclosure rule lets the public see; a guarantee is told with its whole law."""
    if facts.is_open or disclose is Disclosure.LAW:
        return NoiseStatement(
            method=facts.method,
            kind=facts.kind,
            disclose=Disclosure.LAW,
            parameters=dict(facts.parameters),
            law=facts.law,
            law_parameter=facts.parameter or None,
            other_laws=dict(facts.others) or None,
            guarantee=facts.guarantee or None,
        )
    if disclose is Disclosure.VARIANCE:
        return NoiseStatement(
            method=facts.method,
            kind=facts.kind,
            disclose=disclose,
            variance=_rough_variance(facts.variance),
            bound=_rough_bound(facts.bound),
        )
    return NoiseStatement(method=facts.method, kind=facts.kind, disclose=disclose)


def _rough_variance(variance: float | None) -> float | None:
    """Round up to one decimal: the last digits of a computed variance would tell which parameters it came from."""
    return None if variance is None else ceil(round(variance * 10, 4)) / 10


def _rough_bound(bound: int | None) -> str | None:
    """A bound that is true but helps no attacker: the exact one is rounded up to a multiple of ten."""
    return None if bound is None else phrase("at most {bound}", bound=max(10, -(-bound // 10) * 10))
