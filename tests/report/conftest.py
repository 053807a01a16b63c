"""A small release, its audit and its report, made once for the tests of the pages."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from discreet.audit.audit import Audit
from discreet.audit.case import Case, open_case
from discreet.pipeline.audit import audit, write_audit
from discreet.programme.programme import load_programme
from discreet.release.reader import open_release
from discreet.synth import generate
from tests.pipeline.conftest import SECRET, run

GATES = """
[gates]
averaging = 0.99
pinned_cells = 0
true_uniques = 0.01
posterior = { prior = 0.1 }
"""


@dataclass(frozen=True)
class Reported:
    release: Path
    case: Case
    audit: Audit
    folder: Path


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    place = tmp_path_factory.mktemp("report")
    census, release, folder = place / "census", place / "release", place / "report"
    generate(1500, 7, census, tables=["3.1", "3.3", "8.1"], threads=1)
    programme = census / "programme.toml"
    words = programme.read_text(encoding="utf-8").replace("V = 2.0", "V = 1.93").replace("D = 5", "D = 7")
    programme.write_text(words, encoding="utf-8")
    run(census, release)
    programme.write_text(words + GATES, encoding="utf-8")
    case = open_case(load_programme(programme), SECRET, open_release(release))
    found = audit(case, without=["reconstruction"])
    write_audit(found, folder, release)
    return Reported(release, case, found, folder)
