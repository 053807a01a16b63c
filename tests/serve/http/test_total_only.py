"""A release in which a variable appears with its total only can be verified, attacked and served."""

from pathlib import Path

import pytest

from discreet.audit.evidence import published
from discreet.release.reader import open_release
from discreet.release.verify import verify
from discreet.serve.http.pxweb import router
from discreet.serve.jobs_store import Store
from discreet.serve.open import serve_release
from tests.pipeline.conftest import run
from tests.serve.conftest import cells, query
from tests.serve.http.conftest import Web

PROGRAMME = """
[population]
persons = "persons.csv"
person_id = "pid"
geography = ["lau"]
[variables.SEX]
column = "sex"
codelist = "sex.csv"
[variables.EDU]
column = "edu"
codelist = "edu.csv"
breakdowns = { N = 0 }
[noise]
kind = "cell-key"
D = 5
V = 2
allow_weak = true
[[cubes]]
id = "one"
unit = "persons"
axes = ["SEX", "EDU.N"]
[[cubes]]
id = "two"
unit = "persons"
axes = ["EDU.N"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [f"{n},{'FM'[n % 2]},{'AB'[n % 3 % 2]},{'XYZ'[n % 3]}" for n in range(90)]
    (tmp_path / "persons.csv").write_text("\n".join(["pid,sex,edu,lau", *lines]) + "\n")
    for name, codes in (("sex", "FM"), ("edu", "AB")):
        rows = [f"{code},,{name} {code}" for code in codes]
        (tmp_path / f"{name}.csv").write_text("\n".join(["code,parent,label", *rows]) + "\n")
    (tmp_path / "programme.toml").write_text(PROGRAMME)
    run(tmp_path, tmp_path / "release")
    return tmp_path / "release"


def test_an_axis_with_its_total_only_is_served(folder: Path, store: Store, web: Web) -> None:
    assert verify(folder).passed
    opened = open_release(folder)
    assert [len(one.tables) for one in published(opened).universes] == [2]
    builder = serve_release(opened, store)
    found = builder.ask(query("SEX", "EDU.N"), "u", job=True)
    by_sex = cells(builder.ask(query("SEX"), "u", job=True))
    assert cells(found) == {(*codes, "_T"): value for codes, value in by_sex.items()}
    client = web(builder)
    for place in (
        "/",
        "/health",
        "/api/v1/catalogue",
        f"{router.prefix}/tables",
        f"{router.prefix}/tables/one/metadata",
    ):
        assert client.get(place).status_code == 200, place
