"""What must be declared before a reach is claimed, the messages where it is not, and the table of the documentation."""

import re
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.errors import Mistakes
from discreet.maths.noise.additive import LawKind
from discreet.maths.privacy.accounting import Neighbours
from discreet.maths.privacy.sensitivity import Reach
from discreet.perturb.choose import mechanism
from discreet.perturb.reach import change, fixed_variables, has_fixed_families, reach, used
from discreet.programme.attributes import Attribute, Attributes, Holder
from discreet.programme.codelist import Code, codelist
from discreet.programme.cube import Signature, signatures
from discreet.programme.filter import parse_filter
from discreet.programme.noise import BudgetRule, Claim, PrivateNoise, Protects
from discreet.programme.programme import load_declaration
from tests.cases import few

PAGE = (Path(__file__).parents[2] / "docs/explanation/neighbours.md").read_text(encoding="utf-8")
SECRET = bytes(32)
ATTRIBUTES = Attributes(
    {
        "SEX": Attribute(Holder.PERSON),
        "HST": Attribute(Holder.HOUSEHOLD),
        "FST": Attribute(Holder.FAMILY),
        "GEO": Attribute(Holder.DWELLING, fixed=True),
        "OCS": Attribute(Holder.DWELLING),
    },
    {"works": Attribute(Holder.PERSON), "owner": Attribute(Holder.HOUSEHOLD)},
)


def rule(members: int | None = 5, **changed: object) -> PrivateNoise:
    given: dict[str, object] = {"attributes": ATTRIBUTES, "largest_household": members, **changed}
    return PrivateNoise(LawKind.GEOMETRIC, BudgetRule(Fraction(1)), **given)  # type: ignore[arg-type]


def of(unit: str, axis: str = "", base: str = "", flag: str = "") -> Signature:
    return Signature(unit, f'{base} in ("1")' if base else "", flag, ((axis, 1),) if axis else ())


CASES = {  # number of the case in the table -> a protected unit and cross-tabulations of it
    1: ("person", [of("persons", "SEX"), of("persons", "GEO", "SEX", "works"), of("persons")]),
    2: (
        "person",
        [of("persons", "SEX", "HST"), of("persons", "", "FST"), of("persons", "GEO", flag="owner")],
    ),
    3: ("person", [of("persons", "HST"), of("persons", "FST"), of("persons", "HST", "HST", "owner")]),
    4: ("person", [of("families"), of("families", "GEO"), of("families", "GEO", "FST", "owner")]),
    5: ("person", [of("families", "FST"), of("families", "HST"), of("families", "SEX", "GEO")]),
    6: ("person", [of("households"), of("households", "GEO"), of("dwellings", "GEO", "GEO")]),
    7: (
        "person",
        [of("households", "GEO", "HST"), of("households", "", "", "owner"), of("dwellings", "", "OCS")],
    ),
    8: ("person", [of("households", "HST"), of("households", "SEX", "GEO"), of("dwellings", "OCS", "OCS")]),
    9: ("household", [of("persons", "HST"), of("persons"), of("families", "FST", "GEO"), of("families")]),
    10: ("household", [of("households"), of("households", "HST", "GEO", "owner")]),
    11: ("household", [of("dwellings", "OCS")]),
}


def _rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if re.match(r"\| \d", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("members", [1, 2, 5, 12])
def test_the_table_of_changes_is_that_of_the_page(members: int) -> None:
    rows = [row for row in _rows(PAGE) if len(row) == 8]
    assert [int(row[0]) for row in rows] == list(CASES)
    for number, _unit, protects, _axes, _base, *counts in rows[:-1]:
        asked, every = CASES[int(number)]
        assert asked == protects
        expected = [{"M": members, "M - 1": members - 1}.get(one) for one in counts]
        wanted = tuple(
            int(one) if one.isdigit() else found for one, found in zip(counts, expected, strict=True)
        )
        for signature in every:
            found = change(signature, rule(members, protects=Protects(protects)))
            assert (found.came, found.moved, found.crossed) == wanted, (number, signature)


def test_the_sensitivities_of_the_page_are_those_of_the_function() -> None:
    rows = [row for row in _rows(PAGE) if len(row) == 3]
    assert [int(row[0]) for row in rows] == list(CASES)[:-1]
    for number, added, substituted in rows:
        protects, every = CASES[int(number)]
        for kind, cell in ((Neighbours.ADD_REMOVE, added), (Neighbours.SUBSTITUTE, substituted)):
            expected = Reach(*(int(one) for one in cell.split(",")))
            for signature in every:
                asked = rule(5, protects=Protects(protects), neighbours=kind)
                assert reach(signature, asked) == expected, (number, signature)


def test_dwellings_are_alike_whether_a_person_or_a_household_is_protected() -> None:
    for signature in (of("dwellings"), of("dwellings", "OCS"), of("dwellings", "GEO", "OCS")):
        person, household = (change(signature, rule(3, protects=one)) for one in Protects)
        assert person == household


def test_fixed_families_change_one_by_one_unless_the_household_changes_them_all() -> None:
    fixed = Attributes(ATTRIBUTES.variables, ATTRIBUTES.flags, fixed_families=True)
    for signature, expected in (
        (of("families"), Reach(1, 1, 1)),
        (of("families", "GEO"), Reach(1, 1, 1)),
        (of("families", "GEO", "FST"), Reach(1, 1, 1)),
        (of("families", "FST"), Reach(2, 2, 1)),
        (of("families", "FST", "HST"), Reach(4, 16, 4)),
        (of("families", "HST"), Reach(7, 25, 4)),
    ):
        assert reach(signature, rule(4, attributes=fixed)) == expected, signature
    assert reach(of("families", "FST"), rule(None, attributes=fixed)) == Reach(2, 2, 1)


@pytest.mark.parametrize("protects", Protects)
@pytest.mark.parametrize("fixed", [True, False])
def test_fixed_families_are_stated_where_families_are_counted_and_a_person_is_protected(
    protects: Protects, *, fixed: bool
) -> None:
    asked = rule(protects=protects, attributes=Attributes({}, {}, fixed_families=fixed))
    assert has_fixed_families([of("persons"), of("families")], asked) == (
        fixed and protects is Protects.PERSON
    )
    assert not has_fixed_families([of("persons"), of("households"), of("dwellings")], asked)


def test_what_a_household_decides_costs_nothing_more_where_it_is_fixed() -> None:
    fixed = Attributes({"HST": Attribute(Holder.HOUSEHOLD, fixed=True), "X": Attribute(fixed=True)})
    for axis in ("HST", "X"):
        assert reach(of("persons", axis), rule(None, attributes=fixed)) == Reach(1, 1, 1)
    assert fixed_variables([of("persons", "HST"), of("persons", "X")], rule(attributes=fixed)) == ("HST", "X")


@pytest.mark.parametrize(
    "text",
    few(
        [
            'HST == "1"',
            'SEX == "a" or not (HST in ("1", "x") and GEO == "a")',
            'SEX != "say \\"HST\\" or \\\\" and HST != "a"',
            f"""HST in ({", ".join(f'"code {number}"' for number in range(30_000))})""",
        ],
        1,
        3,
    ),
)
def test_every_variable_of_a_base_is_found_and_no_code(text: str) -> None:
    """Also in a base that is too long for a user's filter."""
    codes = ["1", "a", "x", 'say "HST" or \\', *(f"code {number}" for number in range(30_000))]
    tree = {
        name: codelist(name, [Code(code, "", "") for code in [*codes, "b"]]) for name in ("SEX", "HST", "GEO")
    }
    base = parse_filter(text[:100], tree) if len(text) < 1000 else None
    canonical = text if base is None else base.canonical
    expected = {"HST"} if base is None else set(base.variables)
    found = used(Signature("persons", canonical, "", ()), rule())
    assert set(found.deciding) == expected
    assert reach(Signature("persons", canonical, "", ()), rule(4)) == Reach(4, 16, 4)


def test_a_group_of_codes_belongs_to_its_variable() -> None:
    assert (
        reach(of("persons", "HST~0af3"), rule(3)) == reach(of("persons", "HST"), rule(3)) == Reach(5, 13, 3)
    )


@pytest.mark.parametrize(
    ("signature", "changed", "message"),
    [
        (of("persons", "AGE"), {}, "whose attribute is AGE?"),
        (of("persons", "", "AGE"), {}, "whose attribute is AGE?"),
        (of("dwellings", "AGE"), {}, "whose attribute is AGE?"),
        (of("persons", flag="rich"), {}, "whose attribute is the counted column 'rich'?"),
        (of("persons", "OCS"), {}, "OCS of a dwelling may change for all who live in it"),
        (of("households", "", "OCS"), {}, "OCS of a dwelling may change for all who live in it"),
        (of("families", "OCS"), {"protects": Protects.HOUSEHOLD}, "OCS of a dwelling may change"),
        (
            of("persons", "HST"),
            {"members": None},
            "noise.largest_household: is missing: one person can change HST",
        ),
        (of("persons", "", "FST"), {"members": None}, "one person can change FST for all members"),
        (
            of("persons", flag="owner"),
            {"members": None},
            "one person can change column owner for all members",
        ),
        (of("families"), {"members": None}, "one person can change all families of a household"),
    ],
)
def test_what_is_not_declared_is_refused_and_never_guessed(
    signature: Signature, changed: dict[str, object], message: str
) -> None:
    with pytest.raises(Mistakes) as refused:
        reach(signature, rule(**changed))  # type: ignore[arg-type]
    assert message in str(refused.value)
    assert len(refused.value.problems) == 1
    reach(signature, rule(**changed, claim=Claim.NONE))  # type: ignore[arg-type]


PROGRAMME = """
[population]
persons = "absent.parquet"
families = "absent.parquet"
person_id = "pid"
family_id = "fid"
{population}

[variables.SEX]
codelist = "two.csv"
{sex}

[variables.HHSIZE]
codelist = "two.csv"
{size}

[[cubes]]
id = "people"
axes = ["SEX", "HHSIZE"]
count = "works"

[[cubes]]
id = "families"
unit = "families"
axes = ["HHSIZE"]

[noise]
kind = "geometric"
epsilon = 1
{noise}
"""


def refused(folder: Path, **given: str) -> list[str]:
    """The problems of a programme, without its file."""
    parts = {"population": "", "sex": "", "size": "", "noise": "", **given}
    (folder / "two.csv").write_text("code,parent,label\n1,,\n2,,\n")
    (folder / "p.toml").write_text(PROGRAMME.format(**parts))
    try:
        mechanism(load_declaration(folder / "p.toml"), SECRET, SECRET)
    except Mistakes as mistakes:
        return [f"{one.key}: {one.value}; {one.remedy}" for one in mistakes.problems]
    return []


def test_a_programme_is_refused_in_a_line_for_each_remedy(tmp_path: Path) -> None:
    assert refused(tmp_path) == [
        (
            "variables: whose attribute is HHSIZE, SEX? A guarantee depends on it; "
            'add of = "person" where it is no one else\'s, else of = "family", "household" or "dwelling"'
        ),
        (
            "population.flags: whose attribute is the counted column 'works'? A guarantee depends on it; "
            'add flags = { works = { of = "person" } }'
        ),
        (
            "noise.largest_household: is missing: one person can change all families of a household; "
            "state how many members the largest household has, or declare population.fixed_families = true, "
            "which a release states"
        ),
    ]
    own = {"sex": 'of = "person"', "population": 'flags = { works = { of = "person" } }'}
    derived = refused(tmp_path, **own, size='of = "household"')
    assert derived[0] == (
        "noise.largest_household: is missing: one person can change HHSIZE for all members of a household; "
        "state how many members the largest household has, or declare fixed = true, which a release states"
    )
    assert refused(tmp_path, **own, size='of = "household"', noise="largest_household = 9") == []
    own["population"] += "\nfixed_families = true"
    assert refused(tmp_path, **own, size='of = "household"\nfixed = true') == []


def test_the_attributes_of_a_programme_reach_its_noise(tmp_path: Path) -> None:
    assert refused(tmp_path, sex='of = "person"', size='of = "household"', noise='claim = "none"') == []
    noise = load_declaration(tmp_path / "p.toml").noise
    assert isinstance(noise, PrivateNoise)
    assert noise.attributes == Attributes(
        {"SEX": Attribute(Holder.PERSON), "HHSIZE": Attribute(Holder.HOUSEHOLD)}
    )


def test_the_whole_eu_programme_is_declared(tmp_path: Path) -> None:
    """Only what a person's household decides needs more: its size, or that it is fixed."""
    (tmp_path / "geo.csv").write_text("code,parent,label\nA,,\nA1,A,\nA11,A1,\nA111,A11,\n")
    text = '[population]\n{tables}\n[variables.GEO]\ncodelist = "geo.csv"\n[standard]\nprogramme = "eu-census-2021"\n'
    units = {"persons": "person", "households": "household", "families": "family", "dwellings": "dwelling"}
    tables = "".join(f'{unit} = "absent.parquet"\n{one}_id = "{one[0]}id"\n' for unit, one in units.items())
    noise = '[noise]\nkind = "geometric"\nepsilon = 1\n'
    (tmp_path / "p.toml").write_text(text.format(tables=tables) + noise + "largest_household = 12\n")
    programme = load_declaration(tmp_path / "p.toml")
    assert isinstance(programme.noise, PrivateNoise)
    every = {reach(signature, programme.noise).l1 for signature in signatures(programme.cubes)}
    assert every == {1, 2, 12, 23}
    assert {"GEO", "LOC"} <= set(fixed_variables(signatures(programme.cubes), programme.noise))
    assert not {"HST", "FST", "TPH", "SPH"} & set(
        fixed_variables(signatures(programme.cubes), programme.noise)
    )
    (tmp_path / "p.toml").write_text(text.format(tables=tables) + noise)
    with pytest.raises(Mistakes) as found:
        mechanism(load_declaration(tmp_path / "p.toml"), SECRET, SECRET)
    assert [one.value.partition(" for")[0] for one in found.value.problems] == [
        "is missing: one person can change FST, HST",
        "is missing: one person can change all families of a household",
    ]
