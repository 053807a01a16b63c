"""Inference with noise in the likelihood: 1000 tests of independence, a binomial test and the total of many cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.costs import Stopwatch, measured
from benchmarks.lines import Line, Section, Target
from discreet.inference import noise_by, total
from discreet.maths.inference.binomial import binomial_test
from discreet.maths.inference.independence import independence_tests
from discreet.maths.noise.additive import discrete_laplace, truncated_laplace
from discreet.maths.noise.publishing import PublishedLaw

PERSONS = 1000  # tables
SECONDS = 10


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    lines = []
    for epsilon, bound in (("0.1", 10), ("0.5", 7), ("0.1", 0)):
        law = f"epsilon {epsilon}" + (f", bound {bound}" if bound else ", unbounded")
        cost = measured("inference", "independence", repeats, tables=persons, epsilon=epsilon, bound=bound)
        targets = (Target("wall s", cost.wall, SECONDS),)
        lines.append(
            Line(
                f"{persons:,} tables of 10 x 10, {law}: LR and chi-square", "Discreet", cost, targets=targets
            )
        )
    lines.append(
        Line("binomial test, N = 10,000, enumerated", "Discreet", measured("inference", "binomial", repeats))
    )
    lines.append(Line("total of 10,000 clipped cells", "Discreet", measured("inference", "cells", repeats)))
    return [
        Section("Inference", tuple(lines), ("Compiling the kernels once after installation is not counted.",))
    ]


def independence(watch: Stopwatch, tables: int, epsilon: str, bound: int) -> dict[str, float]:
    rng = np.random.default_rng(1)
    law = truncated_laplace(epsilon, bound) if bound else discrete_laplace(epsilon)
    rows, columns = rng.uniform(-0.5, 0.5, (tables, 10, 1)), rng.uniform(-0.5, 0.5, (tables, 1, 10))
    true = rng.poisson(np.exp(4 + rows + columns))
    x = true + rng.choice(law.pmf.values, size=true.shape, p=law.pmf.p)
    independence_tests(x[:2], PublishedLaw(law))  # loads the compiled kernels
    with watch.running():
        found = independence_tests(x, PublishedLaw(law))
    return {"size": float((found.likelihood_ratio.p_value <= 0.05).mean())}


def binomial(watch: Stopwatch) -> dict[str, float]:
    noise = PublishedLaw(truncated_laplace("0.5", 7))
    binomial_test(20, 0.3, noise)
    with watch.running():
        found = binomial_test(10_000, 0.3, noise)
    return {"size": found.size(3.8415)}


def cells(watch: Stopwatch) -> dict[str, float]:
    noise, rng = noise_by("laplace", negatives="zero", epsilon=0.5, bound=7), np.random.default_rng(2)
    true = np.where(rng.random(10_000) < 0.6, 0, rng.geometric(0.2, 10_000))
    change = noise.counts.change
    x = noise.counts.publishing.publish(true + rng.choice(change.values, 10_000, p=change.p))
    with watch.running():
        found = total(x, noise)
    return {"low": found.interval.low, "true": int(true.sum()), "high": found.interval.high}
