"""Z. Kazan and J. P. Reiter (2022), Assessing statistical disclosure risk for DP, hierarchical count data.

It sets the paper's numbers beside those of ``discreet.maths.attacks.bayes`` and ``bayes_hierarchy``, and beside those
of releases that are made and attacked (kazan_reiter_2022_run); its charts are in kazan_reiter_2022_charts.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import numpy as np

from discreet.maths.attacks.bayes import Adversary
from discreet.maths.attacks.bayes_hierarchy import Chain, Hierarchy
from discreet.maths.noise.additive import Number, discrete_gaussian
from discreet.maths.privacy.accounting import epsilon_of_rho, epsilon_of_rho_as_published
from examples.claims import Claim, differs, exact, near, unprinted
from examples.kazan_reiter_2022_charts import charts, run_charts
from examples.kazan_reiter_2022_run import Attacked, Share, run
from examples.running import Example, Replication, Size, main

GLOBAL = Fraction("2.56")
SHARES = {  # of a level, of its detailed histogram, and the printed product
    "United States": (Fraction(104, 4099), Fraction(189, 241), "0.0509"),
    "State": (Fraction(1440, 4099), Fraction(230, 4097), "0.0505"),
    "County": (Fraction(447, 4099), Fraction(754, 4097), "0.0514"),
    "Tract": (Fraction(687, 4099), Fraction(241, 2051), "0.0504"),
    "Block group": (Fraction(1256, 4099), Fraction(1288, 4099), "0.2465"),
    "Block": (Fraction(165, 4099), Fraction(3945, 4097), "0.0992"),
}
RHO_1 = GLOBAL * SHARES["Block"][0] * SHARES["Block"][1]
RHO_2 = GLOBAL * SHARES["Block group"][0] * SHARES["Block group"][1]
OTHERS = 27
PRIORS = (Fraction(1, 2), Fraction(1, 5), Fraction(1, 10), Fraction(1, 50), Fraction(1, 864))
TABLE_4 = {  # x1: mass, posteriors, risks
    1: ("0.161", ("0.525", "0.216", "0.109", "0.022"), ("1.05", "1.08", "1.09", "1.10", "1.10")),
    2: ("0.119", ("0.574", "0.252", "0.130", "0.027"), ("1.15", "1.26", "1.30", "1.34", "1.35")),
    3: ("0.073", ("0.622", "0.291", "0.154", "0.032"), ("1.24", "1.46", "1.54", "1.62", "1.64")),
    4: ("0.036", ("0.667", "0.334", "0.182", "0.039"), ("1.33", "1.67", "1.82", "1.96", "2.00")),
    5: ("0.015", ("0.710", "0.379", "0.213", "0.047"), ("1.42", "1.90", "2.13", "2.37", "2.44")),
}
TABLE_5 = ("0.524", "0.225", "0.117", "0.024", "0.0014"), ("1.05", "1.13", "1.17", "1.21", "1.22")
TABLE_8 = ("11", "40", "30", "14", "4.6", "0.7")
SMALL_COUNTIES = {1: 2, 8: 1}  # x2 -> how many counties of a release have so many such persons in every cell
FULL_COUNTIES = {1: 12, 2: 6, 3: 4, 4: 3, 5: 3, 8: 3, 20: 1}
X2_GRID, Y1_GRID = range(-3, 6), range(-30, 31)  # the tiles of Figure 4
DROPPED = "the chain behind it drops X1 ≤ X2 where it draws X1"


def adversary(prior: Fraction, rho: Number = RHO_1) -> Adversary:
    """One who knows that nobody else in the block has the target's characteristics."""
    return Adversary(discrete_gaussian(rho), 0, float(prior))


@cache
def hierarchy(rho: Number = RHO_2) -> Hierarchy:
    """A district among 28 of a county."""
    return Hierarchy(discrete_gaussian(RHO_1), discrete_gaussian(rho), OTHERS)


def replicate(size: Size) -> Replication:
    """Compute everything; the sizes differ in how many points the figures have."""
    parts = (_budget(), _table_4(), _table_5(), _decisions(), _tables_7_8(), _figure_4(), _figures_5_6())
    made = run(RHO_1, RHO_2, FULL_COUNTIES if size is Size.FULL else SMALL_COUNTIES)
    drawn = charts(RHO_1, RHO_2, size is Size.FULL) | run_charts(made)
    return Replication([claim for part in (*parts, _run(made, size)) for claim in part], drawn)


def _budget() -> Iterator[Claim]:
    for level, (whole, histogram, printed) in SHARES.items():
        yield exact("Table 2", f"rho of the histogram, {level}", printed, float(GLOBAL * whole * histogram))
    yield exact("section 2.3", "rho of a block", "0.103", float(GLOBAL * SHARES["Block"][0]))
    delta = Fraction(1, 10**10)
    yield near(
        "section 2.3",
        "epsilon of rho 2.56, delta 1e-10",
        "17.91",
        epsilon_of_rho_as_published(GLOBAL, delta),
        0.0005,
        "cut, not rounded",
    )
    yield unprinted(
        "section 2.3", "the same by the tight conversion", epsilon_of_rho(GLOBAL, delta), digits=5
    )


def _table_4() -> Iterator[Claim]:
    half = adversary(PRIORS[0])
    for x1, (mass, posteriors, risks) in TABLE_4.items():
        why = f"{half.without.at(x1):.3f} is the probability where the target is not there"
        yield differs("Table 4", f"probability of x1 = {x1}", mass, half.with_target.at(x1), why)
        ours = [adversary(prior).posterior(x1) for prior in PRIORS[:4]]
        yield exact("Table 4", f"posterior at x1 = {x1}, p = 1/2, 1/5, 1/10, 1/50", posteriors, ours)
        ratios = [adversary(prior).ratio(x1) for prior in PRIORS]
        yield exact("Table 4", f"risk at x1 = {x1}, p = 1/2 to 1/864", risks, ratios)


def _table_5() -> Iterator[Claim]:
    found = [adversary(prior) for prior in PRIORS]
    yield exact(
        "Table 5", "expected posterior, p = 1/2 to 1/864", TABLE_5[0], [one.mean_posterior for one in found]
    )
    yield exact("Table 5", "risk R, p = 1/2 to 1/864", TABLE_5[1], [one.risk for one in found])
    yield differs(
        "section 4.2",
        "largest of these risks, in the text",
        "1.21",
        max(one.risk for one in found),
        "Table 5 itself has 1.22",
    )


def _decisions() -> Iterator[Claim]:
    fifth = [adversary(PRIORS[1], rho).correct for rho in (Fraction(1, 2), Fraction(3, 5))]
    yield exact("section 4.2", "right decisions, p = 1/5, rho 0.5 and 0.6", ("0.30", "0.28"), fifth)
    yield exact(
        "section 4.2, Figure 3",
        "right decisions, p = 1/2, rho of a block",
        "0.59",
        adversary(PRIORS[0]).correct,
    )
    yield exact(
        "section 4.2", "the same, p = 1/5: a fraction of a percent", "0.00", adversary(PRIORS[1]).correct
    )


def _tables_7_8() -> Iterator[Claim]:
    place = hierarchy()
    alone = adversary(PRIORS[0]).posterior(2)
    yield exact("section 4.3", "posterior of only x1 = 2, %", "57.4", 100 * alone)
    exactly, chain = (100 * place.posterior(2, 1, -1, kind) for kind in (Chain.EXACT, Chain.PAPER))
    sampled = 100 * (0.57 * 0.43 / 10**4) ** 0.5
    yield differs(
        "Table 7", "posterior of x1, x2, y1 = 2, 1, -1, %", "57.0", exactly, DROPPED, printed_error=sampled
    )
    yield exact(
        "Table 7", "the same by that chain, which drew 10,000 times", "57.0", chain, printed_error=sampled
    )
    masses = _upper_posterior(Chain.PAPER)
    yield exact(
        "Table 8", "X2 = 0 .. 5 by that chain, %", TABLE_8, [100 * one for one in masses], printed_error=0.2
    )
    yield unprinted(
        "Table 8",
        "X2 = 0 .. 5 by the stated model, %",
        [100 * one for one in _upper_posterior(Chain.EXACT)],
        DROPPED,
    )


def _upper_posterior(chain: Chain) -> list[float]:
    """Pr[X2 = k] for k = 0 .. 5 given 2, 1, -1: the laws of X2 given X1 = 0 and 1, mixed."""
    place = hierarchy()
    k2 = np.arange(60)
    target = place.posterior(2, 1, -1, chain)
    found = np.zeros(len(k2))
    for k1, weight in ((0, 1 - target), (1, target)):
        law = np.array([place.upper.pmf.at(1 - k) * place.others.at(-1 - k + k1) for k in k2.tolist()])
        law[:k1] = 0
        found += weight * law / law.sum()
    return [float(one) for one in found[:6]]


@cache
def changes(x2: int, chain: Chain) -> tuple[float, float]:
    """How probably the hierarchy mends a decision, and how probably it spoils one, over the tiles of Figure 4."""
    place, own = hierarchy(), adversary(PRIORS[0])
    mended = spoiled = 0.0
    for x1 in (0, 1):  # without the hierarchy 1 is decided rightly and 0 is not
        for upper in X2_GRID:
            for others in Y1_GRID:
                decides = place.posterior(x1, upper + x2 - 1, others + x2 - 1, chain) > 0.5
                mass = own.with_target.at(x1) * place.upper.pmf.at(upper - 1) * place.others.at(others)
                mended += mass * (decides and x1 == 0)
                spoiled += mass * (not decides and x1 == 1)
    return mended, spoiled


def _figure_4() -> Iterator[Claim]:
    mended, spoiled = changes(1, Chain.PAPER)
    ours = [100 * mended, 100 * spoiled, 100 * (mended - spoiled)]
    yield near(
        "section 4.3, Figure 4",
        "decisions mended and spoiled, gain, by that chain, %",
        ("2.48", "1.83", "0.65"),
        ours,
        0.12,
        "tiles near 1/2 were decided by 250,000 draws",
    )
    without = adversary(PRIORS[0]).correct
    gain = 100 * (hierarchy().correct(1) - without)
    yield differs("section 4.3", "gain by the stated model, %", "0.65", gain, DROPPED)


def _figures_5_6() -> Iterator[Claim]:
    without = 100 * adversary(PRIORS[0]).correct
    yield exact("section 4.3", "right decisions without the hierarchy, %", "58.89", without)
    many = np.mean([100 * hierarchy().correct(x2) for x2 in range(8, 21)])
    yield near(
        "Figure 5",
        "right decisions with many in the larger group, %",
        "59.05",
        float(many),
        0.002,
        "printed is a mean of simulations from x2 = 4 on",
    )
    few = [100 * hierarchy().correct(x2) for x2 in range(1, 6)]
    yield unprinted(
        "Figure 5",
        "the same for x2 = 1 .. 5 by the stated model, %",
        few,
        "the figure shows the other chain, which has 59.5 at x2 = 1",
    )
    mended, spoiled = changes(1, Chain.PAPER)
    yield unprinted("Figure 5", "the same for x2 = 1 by that chain, %", without + 100 * (mended - spoiled))
    yield near(
        "section 4.3, Figure 6",
        "right decisions at rho2 = 100, %",
        "59.2",
        100 * hierarchy(Fraction(100)).correct(1),
        0.005,
        "half a million draws",
    )


def _run(made: Attacked, size: Size) -> Iterator[Claim]:
    """The same from releases: measured, published and attacked."""
    x1 = made.targets.x1 - made.targets.true + 1
    for count in (1, 2, 3, 4, 5):
        share = Share(float((x1 == count).mean()), len(x1))
        yield unprinted(
            "Table 4, in a release", f"share of targets with x1 = {count}", share.share, error=share.error
        )
    for at, prior in enumerate(PRIORS):
        one = adversary(prior)
        counts, times = np.unique(x1, return_counts=True)
        posteriors = np.array([one.posterior(count) for count in counts.tolist()])
        mean = float(times @ posteriors) / len(x1)
        error = float(np.sqrt(times @ (posteriors - mean) ** 2)) / len(x1)
        where = "Table 5, in a release"
        yield exact(where, f"mean posterior, p = {prior}", TABLE_5[0][at], mean, error=error)
        scale = float(prior)
        yield exact(where, f"risk R, p = {prior}", TABLE_5[1][at], mean / scale, error=error / scale)
    own = Share(float((x1 >= 1).mean()), len(x1))
    yield _percent("section 4.3, in a release", "right decisions without the hierarchy, %", "58.89", own)
    few = made.decided(1)
    yield unprinted(
        "Figure 5, in a release",
        "right decisions, x2 = 1, stated model, %",
        100 * few.share,
        error=100 * few.error,
    )
    mended, spoiled, right = made.changes(1, Chain.PAPER)
    for what, printed, found in (
        ("decisions mended", "2.48", mended),
        ("decisions spoiled", "1.83", spoiled),
    ):
        yield _percent(
            "section 4.3, Figure 4, in a release", f"{what}, x2 = 1, by that chain, %", printed, found
        )
    yield unprinted(
        "Figure 5, in a release",
        "right decisions, x2 = 1, by that chain, %",
        100 * right.share,
        error=100 * right.error,
    )
    many = made.decided(8)
    yield _percent(
        "Figure 5, in a release", "right decisions with many in the larger group, %", "59.05", many
    )
    counties = {1: 6 if size is Size.FULL else 1}
    for rho, printed in ((Fraction(1, 2), "0.30"), (Fraction(3, 5), "0.28")):
        other = run(rho, RHO_2, counties)
        fifth = adversary(PRIORS[1], rho)
        decided = [fifth.posterior(count) > 0.5 for count in other.of(1).x1.tolist()]
        share = Share(float(np.mean(decided)), len(decided))
        yield exact(
            "section 4.2, in a release",
            f"right decisions, p = 1/5, rho {float(rho)}",
            printed,
            share.share,
            error=share.error,
        )
    sharp = run(RHO_1, Fraction(100), counties).decided(1)
    yield _percent("Figure 6, in a release", "right decisions at rho2 = 100, %", "59.2", sharp)


def _percent(where: str, what: str, printed: str, found: Share) -> Claim:
    return exact(where, what, printed, 100 * found.share, error=100 * found.error)


EXAMPLE = Example(
    "kazan-reiter-2022", "Kazan & Reiter (2022), Disclosure risk for hierarchical count data", replicate
)

if __name__ == "__main__":
    raise SystemExit(main(EXAMPLE))
