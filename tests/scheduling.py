"""Which tests one worker of ``pytest -n`` runs together, and in which order.

A file is run by one worker, so that what its tests share is made once; so are folders that share what takes long to
start. What takes longest comes first, so that no worker is left with a long file at the end.
"""

import gc
from collections.abc import Generator, Sequence

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = (
    "tests/engine",  # one Java
    "tests/serve/page",  # one Chromium and one server
    "tests/report",  # one audit
)
SYNTAX_TREES = (  # files that read the syntax trees of the whole source
    "tests/test_architecture.py",
    "tests/test_words.py",
    "tests/api/test_commands.py",
    "tests/text/test_catalogue.py",
)
FIRST: Sequence[str] = (
    *TOGETHER,
    "tests/docs/test_pages_run.py",
    "tests/serve/http/test_killed.py",
    "tests/serve/test_budget.py",
    "tests/docs/test_wheel.py",
    SYNTAX_TREES[0],
    "tests/audit/test_gating.py",
    "tests/pipeline/test_hierarchical_release.py",
    "tests/pipeline/test_every_processor.py",
    "tests/fuzz/test_fuzz.py",
    "tests/test_kernels.py",
    "tests/maths/cells/test_margins.py",
    "tests/pipeline/test_private_release.py",
    "tests/perturb/test_ledger.py",
    "tests/cli/test_audit.py",
    "tests/serve/http/test_attacks.py",
    "tests/test_lazy.py",
    "tests/test_standalone.py",
)


def together(nodeid: str) -> str:
    """The folder or the file whose tests are run by one worker."""
    file = nodeid.partition("::")[0]
    if file in SYNTAX_TREES:
        return SYNTAX_TREES[0]
    return next((folder for folder in TOGETHER if file.startswith(f"{folder}/")), file)


def place(nodeid: str) -> int:
    """Where a test comes in the order."""
    unit = together(nodeid)
    return FIRST.index(unit) if unit in FIRST else len(FIRST)


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """Gives the next file or folder to the worker that has finished one."""

    def _split_scope(self, nodeid: str) -> str:
        return together(nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage, a fifth of the time: what tests import stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first what takes longest."""
    items.sort(key=lambda item: place(item.nodeid))


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling | None:
    """By file, unless ``--dist`` asks for something else."""
    if config.getvalue("dist") != "load":
        return None
    config.option.loadscopereorder = False  # the order is that of the collection
    return ByFile(config, log)
