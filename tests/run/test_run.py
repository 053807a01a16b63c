"""A run carries the secret and never shows it."""

from pathlib import Path

from discreet.programme.programme import load_programme
from discreet.run.identity import begin
from tests.pipeline.conftest import SECRET


def test_a_run_never_shows_its_secret(census: Path) -> None:
    run, identity = begin(load_programme(census / "programme.toml"), SECRET)
    for told in (repr(run), str(run), f"{run}", repr(identity)):
        assert str(SECRET) not in told
        assert SECRET.hex() not in told
    assert run.secret == SECRET
