"""Random bytes that repeat: each test draws its noise, keys and names from the seed of the run and its own name.

Noise with a guarantee is drawn afresh by every release, so that a test of what noise does (two totals differ, an
interval holds) could fail by chance. With a seed it either always fails or never, whatever ran before it and
beside it; another seed (`pytest --seed 7`) gives every test other noise. `--seed random` leaves the randomness of
the operating system, and so do processes that a test starts.
"""

import random
import secrets
from collections.abc import Generator

import pytest
from hypothesis import settings

DEFAULT = "1"


class Bytes:
    """`secrets.token_bytes` from a generator that is seeded again for each test and each wider fixture."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self.source = random.Random(seed)

    def __call__(self, nbytes: int | None = None) -> bytes:
        return self.source.randbytes(secrets.DEFAULT_ENTROPY if nbytes is None else nbytes)

    def named(self, name: str) -> random.Random:
        return random.Random(f"{self._seed} {name}")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.source = self.named(item.nodeid)
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """What several tests share must not depend on which of them comes first."""
        if fixturedef.scope == "function":
            return (yield)
        before = self.source
        self.source = self.named(
            f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param_index', 0)}"
        )
        try:
            return (yield)
        finally:
            self.source = before


def repeat(config: pytest.Config) -> None:
    """Install the seed of this run, in this process."""
    seed = str(config.getoption("--seed"))
    settings.register_profile("discreet", deadline=None, derandomize=seed == DEFAULT)
    settings.load_profile("discreet")
    if seed != "random":
        chosen = Bytes(seed)
        config.pluginmanager.register(chosen, "repeatable-randomness")
        secrets.token_bytes = chosen
