"""Noise laws as objects: their probabilities, errors and guarantees, and samples."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.api.arguments import chosen, names_arguments
from discreet.api.results import Result
from discreet.errors import mistake
from discreet.io.ptable_files import PTableFile, read_ptable
from discreet.maths.cells.lookup import Order, build, change
from discreet.maths.noise.additive import AdditiveLaw, LawKind, Number, SquareSensitivity, exact
from discreet.maths.noise.certificates import GAUSSIAN_DELTA, Certificate, certificate
from discreet.maths.noise.draws import BitSource, draw
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.law import Loss, Pmf
from discreet.maths.noise.named import NoiseParameters, implied_kind, named_law
from discreet.maths.noise.ptable import PTable
from discreet.maths.noise.thresholds import RowLaw, row_table, threshold_table
from discreet.programme.utility_file import read_utility
from discreet.report.ptable import ptable_chart

AnyLaw = AdditiveLaw | RowLaw | PTableLaw
COUNTS = (0, 1, 2, 3, 4, 5, 10, 100)
LEAST_SHOWN = 1e-12  # probabilities below this are left out of what is shown
LEAST_DRAWN = 0.0005  # of a change that a chart has room for


@dataclass(frozen=True, eq=False, repr=False)
class NoiseLaw:
    """The law of the noise of one count; ``certificate`` has its guarantee.

    >>> import discreet as ds
    >>> law = ds.noise("geometric", epsilon=1).found
    >>> round(law.changes()[0], 3), law.certificate.epsilon
    (0.462, 1.0)
    """

    kind: str
    parameters: Mapping[str, str]
    law: AnyLaw
    certificate: Certificate

    def row(self, count: int) -> Pmf:
        """The law of what is published for a true count."""
        return self.law.row(count)

    def changes(self, count: int = 0) -> dict[int, float]:
        """Change -> its probability; laws that are the same for every count need none."""
        found = self.row(count).shifted(-count)
        pairs = zip(found.values.tolist(), found.p.tolist(), strict=True)
        return {int(value): p for value, p in pairs if p >= LEAST_SHOWN}

    def deviation(self, count: int = 0) -> float:
        """The standard deviation of the published count."""
        return math.sqrt(self.row(count).variance)

    def loss(self, count: int, loss: Loss = Loss.L1) -> float:
        """The expected error of a true count."""
        return self.row(count).expected_loss(count, loss)

    def sample(self, n: int, count: int | None = None) -> NDArray[np.int64]:
        """Draw changes with fresh random bits of the operating system; samples cannot be reproduced."""
        if (count is None) != isinstance(self.law, AdditiveLaw):
            remedy = (
                "give the true count" if count is None else "leave it out: it is the same for every count"
            )
            raise mistake("", "count", "missing" if count is None else str(count), remedy)
        bits, true = BitSource(secrets.token_bytes(32)), count or 0
        if isinstance(self.law, PTableLaw):
            keys = (bits.words(n) >> np.uint64(32)).astype(np.uint32)
            drawn: NDArray[np.int64] = change(build(self.law.ptable, Order.PLAIN), np.full(n, true), keys)
            return drawn
        table = threshold_table(self.law) if isinstance(self.law, AdditiveLaw) else row_table(self.law, true)
        return draw(table, n, bits).astype(np.int64) - true

    def as_json(self) -> dict[str, object]:
        """The law as numbers."""
        return {
            "kind": self.kind,
            **self.parameters,
            "deviation": {str(count): self.deviation(count) for count in COUNTS},
            "mean_error": {str(count): self.loss(count) for count in COUNTS},
            "epsilon": self.certificate.epsilon,
            "delta": float(self.certificate.delta),
            "rho": None if self.certificate.rho is None else float(self.certificate.rho),
        }


@names_arguments
def noise(
    kind: str | None = None,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    sigma: Number | None = None,
    sensitivity: Literal["exact", "paper"] | None = None,
    bound: int | None = None,
    V: float | None = None,
    D: int | None = None,
    js: int | None = None,
    ptable: PTable | PTableFile | Result[PTable] | Result[PTableFile] | str | Path | None = None,
    utility: str | Path | None = None,
    delta: Number | None = None,
) -> Result[NoiseLaw]:
    """A noise law: its probabilities, expected errors and guarantee; ``sample`` draws of it.

    ``kind`` is laplace, normal, geometric, discrete-gaussian, hellinger, exponential, uniform or cell-key; without it
    ``rho`` or ``sigma`` mean discrete-gaussian, ``epsilon`` geometric, ``D`` and ``V`` cell-key. A ``ptable`` replaces
    the parameters of cell-key. ``delta`` is where Gaussian noise is certified; other laws are refused above it.

    >>> import discreet as ds
    >>> law = ds.noise("discrete-gaussian", rho="1/8")
    >>> round(law.deviation(), 2)
    2.0
    >>> len(law.sample(100))
    100
    """
    given: dict[str, Any] = {
        "epsilon": epsilon, "bound": bound, "rho": rho, "sigma": sigma, "D": D, "V": V, "js": js,
        "sensitivity": None if sensitivity is None else chosen("sensitivity", sensitivity, SquareSensitivity),
        "utility": None if utility is None else read_utility(Path(utility)),
    }  # fmt: skip
    named = sorted(name for name, value in given.items() if value is not None)
    if ptable is not None:
        if kind is not None or named:
            remedy = "give one of them: leave out the other arguments of the noise, or the p-table"
            raise mistake("", "ptable", f"together with {', '.join(named or ['kind'])}", remedy)
        law_of_table = PTableLaw(table_of(ptable))
        return _described(NoiseLaw("cell-key", {}, law_of_table, _certified(law_of_table, delta)))
    kinds = [one.value for one in LawKind]
    wanted_kind = implied_kind(named) if kind is None else LawKind(kind) if kind in kinds else None
    if wanted_kind is None:
        raise mistake("", "kind", repr(kind), f"choose from {', '.join(kinds)}, or give ptable=")
    wanted = NoiseParameters(wanted_kind, **given)
    law = named_law(wanted)
    parameters = {name: str(value) for name, value in wanted.given().items() if name != "utility"}
    return _described(NoiseLaw(wanted_kind.value, parameters, law, _certified(law, delta)))


def table_of(given: PTable | PTableFile | Result[PTable] | Result[PTableFile] | str | Path) -> PTable:
    """The p-table of an argument: as it is, of a file that was read, or of a path."""
    found: object = given.found if isinstance(given, Result) else given
    if isinstance(found, str | Path):
        return read_ptable(Path(found)).law()
    if isinstance(found, PTableFile):
        return found.law()
    if not isinstance(found, PTable):
        remedy = "give ptable(V=2, D=5), read_ptable(path) or a path"
        raise mistake("", "ptable", f"an object of type {type(found).__name__}", remedy)
    return found


def _certified(law: AnyLaw, delta: Number | None) -> Certificate:
    """Certify a law; a delta is where Gaussian noise is certified, and a limit for the other laws."""
    asked = None if delta is None else exact("delta", delta)
    if asked is not None and not 0 < asked < 1:
        raise mistake("", "delta", str(delta), "give a number between 0 and 1")
    found = certificate(law, GAUSSIAN_DELTA if asked is None else asked)
    if asked is not None and found.delta > asked:
        remedy = "use a larger bound, or a law without one"
        raise mistake("", "delta", f"{float(found.delta):.3g}, above {delta}", remedy)
    return found


def law_of(given: NoiseLaw | Result[NoiseLaw]) -> AnyLaw:
    """The law of an argument."""
    found = given.found if isinstance(given, Result) else given
    if not isinstance(found, NoiseLaw):
        remedy = 'give noise("geometric", epsilon=1) or another law'
        raise mistake("", "law", f"an object of type {type(found).__name__}", remedy)
    return found.law


def _described(found: NoiseLaw) -> Result[NoiseLaw]:
    name = ", ".join((found.kind, *(f"{key} {value}" for key, value in found.parameters.items())))
    proven = found.certificate
    delta = f"delta {_upward(proven.delta):.4g}"
    guarantee = (
        f"epsilon {proven.epsilon:.6g}, {delta}" if proven.epsilon is not None else f"no epsilon: {delta}"
    )
    errors = ", ".join(f"{count}: {found.deviation(count):.3g}" for count in (1, 5, 100))
    counts = COUNTS[:1] if isinstance(found.law, AdditiveLaw) else COUNTS[:6]
    laws = [{k: p for k, p in found.changes(count).items() if p >= LEAST_DRAWN} for count in counts]
    lines = (name, f"Guarantee: {guarantee}.", f"Standard deviation by true count: {errors}.")
    rows = tuple(
        {"count": count, "change": change, "probability": p}
        for count in COUNTS
        for change, p in found.changes(count).items()
    )
    return Result(found, lines, drawings=(ptable_chart(laws, name),), rows=rows)


def _upward(number: Fraction) -> float:
    value = float(number)
    return value if value >= number else math.nextafter(value, math.inf)
