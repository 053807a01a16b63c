"""Z. Kazan and J. P. Reiter (2022), Assessing statistical disclosure risk for DP, hierarchical count data.

It sets the paper's numbers beside those of ``discreet.maths.attacks.bayes`` and ``bayes_hierarchy``, and beside those
of releases that are made and attacked (kazan_reiter_2022_run); its charts are in kazan_reiter_2022_charts.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import numpy as np
from scipy.special import expit

from discreet.audit.bayes_measurements import log_odds
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
TABLE_6 = 2, 1, -1  # the published counts x1, x2, y1
TABLE_8 = ("11", "40", "30", "14", "4.6", "0.7")
MOST = 6  # such persons of a larger group that Table 6 can come from
REACH = 6  # of the others' sums that are taken together, of a noise with standard deviation 12
SMALL_COUNTIES = {
    1: 2,
    2: 1,
    3: 1,
    4: 1,
    5: 1,
    6: 1,
    8: 1,
}  # x2 -> counties of a release with so many in each cell
FULL_COUNTIES = {1: 12, 2: 6, 3: 4, 4: 3, 5: 3, 6: 2, 7: 2, 8: 3, 20: 1}
SMALL_RHOS = Fraction(1), Fraction(100)  # rho2 of the releases of Figure 6
FULL_RHOS = Fraction(1, 50), Fraction(1, 10), RHO_2, Fraction(1), Fraction(10), Fraction(100)
SMALL_FIGURE_6 = {1: 1, 10: 1, 100: 1}  # x2 -> counties of each of these releases
FULL_FIGURE_6 = {1: 6, 10: 1, 100: 4}
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
    full = size is Size.FULL
    made = run(RHO_1, RHO_2, FULL_COUNTIES if full else SMALL_COUNTIES)
    sharper = {
        rho: run(RHO_1, rho, FULL_FIGURE_6 if full else SMALL_FIGURE_6)
        for rho in (FULL_RHOS if full else SMALL_RHOS)
    }
    drawn = charts(RHO_1, RHO_2, full) | run_charts(made, sharper)
    released = (
        _tables_4_5_in(made),
        _tables_7_8_in(made),
        _figures_4_5_in(made),
        _decisions_in(6 if full else 1),
        _figure_6_in(sharper[Fraction(100)]),
    )
    return Replication([claim for part in (*parts, *released) for claim in part], drawn)


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
    yield exact(
        "Table 8", "X2 = 0 .. 5 by that chain, %", TABLE_8, larger(place, Chain.PAPER), printed_error=0.2
    )
    yield unprinted("Table 8", "X2 = 0 .. 5 by the stated model, %", larger(place, Chain.EXACT), DROPPED)


def larger(place: Hierarchy, chain: Chain) -> list[float]:
    """The law of X2 given the counts of Table 6, in percent: 0 .. 5."""
    found = place.larger(*TABLE_6, chain)
    return [100 * found.at(k2) for k2 in range(6)]


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
        "the figure shows the other chain",
    )
    chain = [100 * hierarchy().correct(x2, Chain.PAPER) for x2 in range(1, 6)]
    yield unprinted("Figure 5", "the same for x2 = 1 .. 5 by that chain, %", chain)
    yield near(
        "section 4.3, Figure 6",
        "right decisions at rho2 = 100, %",
        "59.2",
        100 * hierarchy(Fraction(100)).correct(1),
        0.005,
        "half a million draws",
    )


def _tables_4_5_in(made: Attacked) -> Iterator[Claim]:
    """From here on the same from releases: measured, published and attacked."""
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


def _tables_7_8_in(made: Attacked) -> Iterator[Claim]:
    """What the adversary believes of persons whose published counts are those of Table 6, and how many are there."""
    found, place = made.published(*TABLE_6), made.place
    yield unprinted(
        "Table 6, in a release", "persons of whom 2, 1, -1 is published", len(found), of_size=True
    )
    posteriors = [float(expit(log_odds(found, chain=chain)[0])) for chain in (Chain.EXACT, Chain.PAPER)]
    sampled = 100 * (0.57 * 0.43 / 10**4) ** 0.5
    where = "Table 7, in a release"
    yield differs(where, "their posterior, %", "57.0", 100 * posteriors[0], DROPPED, printed_error=sampled)
    yield exact(where, "the same by that chain, %", "57.0", 100 * posteriors[1], printed_error=sampled)
    where = "Table 8, in a release"
    yield exact(where, "X2 = 0 .. 5 by that chain, %", TABLE_8, larger(place, Chain.PAPER), printed_error=0.2)
    yield unprinted(where, "X2 = 0 .. 5 by the stated model, %", larger(place, Chain.EXACT), DROPPED)
    here = made.beliefs(MOST).near(*TABLE_6, REACH)
    share, error = here.share(here.there)
    yield unprinted(
        "Table 7, in a release",
        "2, 1, -7 to 5 published, target there or not in half of the cases: there, %",
        100 * share,
        "a frequency, to be compared with both posteriors",
        error=100 * error,
    )
    for k2 in range(4):
        share, error = here.share(here.larger == k2)
        what = f"the same: X2 = {k2}, %"
        yield unprinted("Table 8, in a release", what, 100 * share, error=100 * error)


def _figures_4_5_in(made: Attacked) -> Iterator[Claim]:
    x1 = made.targets.x1 - made.targets.true + 1
    own = Share(float((x1 >= 1).mean()), len(x1))
    yield _percent("section 4.3, in a release", "right decisions without the hierarchy, %", "58.89", own)
    mended, spoiled, _ = made.changes(1, Chain.PAPER)
    where = "section 4.3, Figure 4, in a release"
    yield _percent(where, "decisions mended, x2 = 1, by that chain, %", "2.48", mended)
    yield _percent(where, "decisions spoiled, x2 = 1, by that chain, %", "1.83", spoiled)
    gain, error = mended.share - spoiled.share, (mended.error**2 + spoiled.error**2) ** 0.5
    yield exact(where, "gain, x2 = 1, by that chain, %", "0.65", 100 * gain, error=100 * error)
    mended, spoiled, _ = made.changes(1, Chain.EXACT)
    gain, error = mended.share - spoiled.share, (mended.error**2 + spoiled.error**2) ** 0.5
    yield differs(where, "gain, x2 = 1, stated model, %", "0.65", 100 * gain, DROPPED, error=100 * error)
    where = "Figure 5, in a release"
    for x2 in (1, 2, 3, 4):
        for chain, name in ((Chain.EXACT, "stated model"), (Chain.PAPER, "by that chain")):
            found = made.decided(x2, chain)
            what = f"right decisions, x2 = {x2}, {name}, %"
            yield unprinted(where, what, 100 * found.share, error=100 * found.error)
    some = [
        made.decided(x2, Chain.PAPER)
        for x2 in np.unique(made.targets.larger[made.targets.larger >= 4]).tolist()
    ]
    mean = float(np.mean([one.share for one in some]))
    error = float(np.sqrt(sum(one.error**2 for one in some))) / len(some)
    what = "right decisions, mean over x2 of 4 and more, by that chain, %"
    yield exact(where, what, "59.05", 100 * mean, error=100 * error)
    yield _percent(where, "right decisions, x2 = 8, stated model, %", "59.05", made.decided(8))


def _decisions_in(counties: int) -> Iterator[Claim]:
    for rho, printed in ((Fraction(1, 2), "0.30"), (Fraction(3, 5), "0.28")):
        other = run(rho, RHO_2, {1: counties})
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


def _figure_6_in(sharp: Attacked) -> Iterator[Claim]:
    for x2 in SMALL_FIGURE_6:
        for chain, name in ((Chain.EXACT, "stated model"), (Chain.PAPER, "by that chain")):
            what = f"right decisions at rho2 = 100, x2 = {x2}, {name}, %"
            yield _percent("Figure 6, in a release", what, "59.2", sharp.decided(x2, chain))


def _percent(where: str, what: str, printed: str, found: Share) -> Claim:
    return exact(where, what, printed, 100 * found.share, error=100 * found.error)


EXAMPLE = Example(
    "kazan-reiter-2022", "Kazan & Reiter (2022), Disclosure risk for hierarchical count data", replicate
)

if __name__ == "__main__":
    raise SystemExit(main(EXAMPLE))
