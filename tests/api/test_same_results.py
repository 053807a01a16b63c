"""A command and its function give the same results."""

import json
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import discreet as ds
from discreet.advise.reasons import document
from discreet.cli.forecast import report
from discreet.cli.risk_redundancy import _universe as universe
from discreet.io.serialize import to_json
from tests.api.test_protect import CUBE, KEY, NOISE, census
from tests.cli.called import discreet

SLOW = ("reconstruction", "region", "disclosure", "bayes")


class Office:
    """A programme file, a secret and a release, for both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programme = census(of="person").programme(
            [CUBE, ds.Cube("nuts3", "sex", id="1.1")], NOISE, name="census"
        )
        self.programme = programme.to_toml(folder / "declared")
        self.secret = folder / "secret.key"
        ds.Secret(KEY).save(self.secret)
        self.release = folder / "release"
        ds.protect(self.programme, secret=self.secret, out=self.release, progress=False)
        self.ptable = ds.write_ptable(ds.ptable(V=2, D=5, js=1), folder / "ptable.csv")


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    return Office(tmp_path_factory.mktemp("office"))


def answered(*words: str | Path) -> Any:
    """What a command reports as JSON."""
    done = discreet(*words, "--json")
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def plain(value: object) -> Any:
    """A result of the library as JSON has it."""
    return json.loads(json.dumps(to_json(value)))


def same(found: Any, told: Any, at: str = "") -> None:
    """Equal, numbers to the last digits; a result may have more than the command reports."""
    if isinstance(told, Mapping) and isinstance(found, Mapping):
        for name, one in told.items():
            assert name in found, f"{at}.{name}"
            same(found[name], one, f"{at}.{name}")
    elif isinstance(told, list) and isinstance(found, list):
        assert len(found) == len(told), at
        for place, (mine, one) in enumerate(zip(found, told, strict=True)):
            same(mine, one, f"{at}[{place}]")
    elif isinstance(told, float) and isinstance(found, int | float):
        assert math.isclose(found, told, rel_tol=1e-9, abs_tol=1e-12), f"{at}: {found} {told}"
    else:
        assert found == told, at


def without(document: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: one for name, one in document.items() if name not in names}


def forecast(office: Office) -> ds.types.Forecast:
    found = ds.forecast(office.programme, epsilon=[1, 5]).found
    assert isinstance(found, ds.types.Forecast)
    return found


def advice(office: Office) -> ds.types.Advice:
    found = ds.advise(office.programme, limits=ds.RiskLimits(uniques=0.8), progress=False).found
    assert isinstance(found, ds.types.Advice)
    return found


def bound(office: Office) -> dict[str, Any]:
    found = ds.risk.bound(ptable=office.ptable, tuples=90, counts=9, records=50).found
    assert found.pinned_small is not None
    pairs = [{"F": one.first, "M": one.second, "probability": one.probability} for one in found.pinned_small]
    names = {"D": found.reach, "p1": found.reveals, "m": found.needed, "uniform_p1": found.uniform_reveals}
    return {**plain(found), **names, "pinned_small": pairs}


def deltas(office: Office) -> dict[str, Any]:
    found = ds.risk.dp(ds.noise(ptable=office.ptable), epsilon=[0, 1]).found
    curve = [{"epsilon": epsilon, "delta": delta} for epsilon, delta in found.curve]
    return {"curve": curve, "fixed_zeros_delta": found.fixed_zeros}


def redundancy(office: Office) -> dict[str, Any]:
    return {
        "universes": list(map(universe, ds.risk.redundancy("eu-census-2021", regions=(1, 1, 2, 68)).found))
    }


Compared = tuple[Callable[[Office], list[str | Path]], Callable[[Office], Any], tuple[str, ...]]
LAW = ("--kind", "geometric", "--epsilon", "1")
CASES: dict[str, Compared] = {
    "check": (
        lambda o: ["check", o.programme, "--secret", o.secret, "--out", o.folder / "next"],
        lambda o: {
            "sound": (found := ds.check(o.programme, secret=o.secret, out=o.folder / "next", progress=False)).passed,
            "problems": plain(found.problems),
            "notes": list(found.notes),
        },
        (),
    ),
    "forecast": (
        lambda o: ["forecast", o.programme, "--epsilon", "1,5"],
        lambda o: plain(report(forecast(o))),
        ("picture",),
    ),
    "advise": (
        lambda o: ["advise", o.programme, "--uniques", "0.8", "--quiet"],
        lambda o: plain(document(advice(o))),
        ("curves",),
    ),
    "audit": (
        lambda o: ["audit", o.release, "--programme", o.programme, "--secret", o.secret, "--quiet",
                   *(word for one in SLOW for word in ("--without", one))],
        lambda o: plain(ds.audit(o.release, o.programme, secret=o.secret, without=SLOW, progress=False).found),
        (),
    ),
    "attack": (
        lambda o: ["attack", o.release, "--ptable", o.ptable, "--without", "reconstruction", "--quiet"],
        lambda o: plain(
            dict(ds.attack(o.release, ptable=o.ptable, without=["reconstruction"], progress=False).found.items())
        ),
        ("release",),
    ),
    "utility": (
        lambda o: ["utility", o.release, "--programme", o.programme, "--secret", o.secret, "--by", "sex", "--quiet"],
        lambda o: plain(ds.utility(o.release, o.programme, secret=o.secret, by="sex", progress=False).found),
        ("release",),
    ),
    "verify": (lambda o: ["verify", o.release], lambda o: plain(ds.verify(o.release).found), ("passed",)),
    "ptable check": (
        lambda o: ["ptable", "check", o.ptable, "--D", "5", "--js", "1"],
        lambda o: plain(ds.check_ptable(o.ptable, D=5, js=1).facts),
        ("file", "format", "modulus", "last_row", "wrap", "sound"),
    ),
    "noise": (
        lambda o: ["noise", "show", *LAW, "--counts", "1,5"],
        lambda o: {
            "pmf": {str(k): p for k, p in ds.noise("geometric", epsilon=1).changes().items()},
            "variance": ds.noise("geometric", epsilon=1).deviation() ** 2,
        },
        ("kind", "parameters", "mean", "standard_deviation", "mean_absolute", "entropy", "quantiles", "losses",
         "certified", "rows"),
    ),
    "risk averaging": (
        lambda o: ["risk", "averaging", "--V", "2", "--k", "40", "--t", "10", "--D", "5"],
        lambda o: plain(ds.risk.averaging(V=2, k=40, t=10, D=5).found),
        ("V", "k", "t", "k_over_t2", "alpha"),
    ),
    "risk bound": (
        lambda o: ["risk", "bound", "--ptable", o.ptable, "--tuples", "90", "--counts", "9", "--records", "50"],
        bound,
        ("V", "alpha", "tuples"),
    ),
    "risk dp": (
        lambda o: ["risk", "dp", "--ptable", o.ptable, "--epsilon", "0,1"],
        deltas,
        ("law", "delta", "neighbours", "same_participants"),
    ),
    "risk redundancy": (
        lambda o: ["risk", "redundancy", "eu-census-2021", "--regions", "1,1,2,68"],
        redundancy,
        ("programme", "country", "regions", "mode"),
    ),
    "risk subsets": (
        lambda o: ["risk", "subsets", "--budget", "3", "--records", "16", "--queries", "64", "--repetitions", "2"],
        lambda o: plain(ds.risk.subsets(budget=3, records=16, queries=[64], repetitions=2).found),
        ("records", "queries_of_theorem", "repetitions", "seed"),
    ),
    "risk bayes count": (
        lambda o: ["risk", "bayes", "count", *LAW, "--known", "3", "--prior", "1/10", "--unknown", "0.2x3,0.5",
                   "--rounding", "3"],
        lambda o: plain(ds.risk.bayes(ds.noise(epsilon=1), known=3, prior="1/10", unknown=[0.2, 0.2, 0.2, 0.5],
                                      rounding=3).found),
        (),
    ),
    "risk bayes levels": (
        lambda o: ["risk", "bayes", "levels", *LAW, "--known", "3", "--level", "known=12,published=15,rho=1/4",
                   "--release", "published=3,epsilon=2", "--published", "4,5"],
        lambda o: plain(ds.risk.bayes_levels(ds.noise(epsilon=1), [
            ds.risk.Observation(known=12, published=15, law=ds.noise(rho="1/4")),
            ds.risk.Observation(published=3, law=ds.noise(epsilon=2)),
        ], known=3, published=[4, 5]).found),
        (),
    ),
    "risk bayes histogram": (
        lambda o: ["risk", "bayes", "histogram", *LAW, "--known", "34,10,0x3", "--prior", "1,2,1,1,1", "--published",
                   "34,11,0,0,0", "--target", "2,3"],
        lambda o: plain(ds.risk.bayes_histogram(ds.noise(epsilon=1), [34, 10, 0, 0, 0], prior=[1, 2, 1, 1, 1],
                                                published=[34, 11, 0, 0, 0], target=[2, 3]).found),
        (),
    ),
    "risk bayes hierarchy": (
        lambda o: ["risk", "bayes", "hierarchy", "--rho", "1/4", "--larger-rho", "1/2", "--groups", "9", "--counts",
                   "1,4", "--published", "2,1,-1", "--chain", "paper"],
        lambda o: plain(ds.risk.bayes_hierarchy(ds.noise(rho="1/4"), ds.noise(rho="1/2"), groups=9, counts=[1, 4],
                                                published=(2, 1, -1), chain="paper").found),
        (),
    ),
    "risk bayes nested": (
        lambda o: ["risk", "bayes", "nested", "--rho", "1/4", "--within", "published=5,others=3,groups=27,most=50",
                   "--within", "exact=40,mean=30", "--published", "1", "--counts", "1,5,40", "--draws", "50"],
        lambda o: plain(ds.risk.bayes_nested(ds.noise(rho="1/4"), [
            ds.risk.LargerGroup(published=5, others=3, groups=27, most=50),
            ds.risk.LargerGroup(exact=40, mean=30),
        ], published=1, counts=[1, 5, 40], draws=50).found),
        (),
    ),
    "accounting compose": (
        lambda o: ["accounting", "compose", "--rho", "1/2*2", "--epsilon", "1", "--delta", "1e-6"],
        lambda o: {"epsilon_at_delta": ds.accounting(
            [ds.PureEpsilon(Fraction(1)), ds.Rho(Fraction(1, 2)), ds.Rho(Fraction(1, 2))], delta=1e-6).epsilons},
        ("releases", "neighbours", "neighbours_meaning", "delta", "epsilon", "delta_at_epsilon", "not_available"),
    ),
    "accounting convert": (
        lambda o: ["accounting", "convert", "--rho", "1", "--delta", "1e-6"],
        lambda o: plain(ds.convert(rho=1, delta=1e-6).found),
        ("given", "asked", "neighbours"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("command", CASES)
def test_a_function_gives_what_its_command_reports(command: str, office: Office) -> None:
    words, function, aside = CASES[command]
    told = without(answered(*words(office)), *aside)
    assert told, "nothing was compared"
    same(function(office), told)


def test_a_converted_ptable_has_the_same_bytes(office: Office) -> None:
    by_command, by_function = office.folder / "command.csv", office.folder / "function.csv"
    for order in ("plain", "shuffled"):
        further = [] if order == "plain" else ["--order", order, "--secret", office.secret]
        answered("ptable", "convert", office.ptable, "--out", by_command, "--to", "ons", *further)
        ds.write_ptable(office.ptable, by_function, to="ons", order=order, secret=office.secret)
        assert by_function.read_bytes() == by_command.read_bytes()


def test_a_synthetic_census_has_the_same_bytes(office: Office) -> None:
    answered("synth", "--persons", "300", "--out", office.folder / "one", "--tables", "3.1")
    ds.synth(300, out=office.folder / "two", tables=["3.1"], progress=False)
    for name in ("persons.parquet", "households.parquet", "programme.toml"):
        assert (office.folder / "one" / name).read_bytes() == (office.folder / "two" / name).read_bytes()


def test_gates_are_judged_alike(office: Office) -> None:
    programme = office.programme.with_name("gates.toml")
    programme.write_text(
        office.programme.read_text(encoding="utf-8") + "\n[gates]\naveraging = 0.9\n", encoding="utf-8"
    )
    told = answered(
        "protect", programme, "--secret", office.secret, "--out", office.folder / "no", "--report-only"
    )
    found = ds.rehearse(programme, secret=office.secret, progress=False)
    same(plain(found.found), told["verdicts"])
    assert not (office.folder / "no").exists()
    with pytest.raises(ds.Mistakes, match="gates: none are declared"):
        ds.rehearse(office.programme, secret=office.secret)


def test_codelists_are_those_of_a_draft(office: Office) -> None:
    """``discreet init`` and a population infer the same ids, geography and codelists from the same file."""
    file = office.programme.parent / "persons.parquet"
    answered("init", file, "--out", office.folder / "draft")
    drafted = ds.load_programme(office.folder / "draft" / "programme.toml").resolved
    found = ds.Population.inferred(persons=file)
    columns = {one.column for one in drafted.variables.values()}
    mine = found.programme([ds.Cube(axis) for axis in sorted(columns)], NOISE).resolved
    assert {one.column for one in mine.variables.values()} == columns
    assert drafted.population is not None
    assert mine.population is not None
    assert list(mine.population.geography) == list(drafted.population.geography)
    assert mine.population.units["persons"].id_column == drafted.population.units["persons"].id_column
    trees = {one.column: one.codelist for one in drafted.variables.values()}
    for one in mine.variables.values():
        assert one.codelist.codes == trees[one.column].codes
        assert one.codelist.labels == trees[one.column].labels
        assert one.codelist.depth == trees[one.column].depth
    ages = found.programme(ds.Cube("age.L", "lau"), NOISE).resolved.cubes[0]
    assert [axis.full_name for axis in ages.axes] == ["age.L", "lau"]
