"""Tutorial, how-to pages and README: every block of code runs, in order, and shows what the page shows."""

from pathlib import Path
from typing import Any

import pytest

from tests.docs.snippets import LANGUAGES, blocks, missing_line, session

ROOT = Path(__file__).parents[2]
LONG = {
    "choose-parameters.md",
    "privacy-budget.md",
    "publish-sdmx.md",
    "publish-tables-that-add-up.md",
    "swap-and-noise.md",
    "table-builder-behind-a-proxy.md",
}
OWN_TEST = {"life-of-an-office.md"}  # tests/cli/test_life_of_an_office.py
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "tutorial").glob("*.md")),
    *(page for page in sorted((ROOT / "docs" / "how-to").glob("*.md")) if page.name not in OWN_TEST),
]
NOT_RUN = {  # page -> the reasons that it gives, in order
    "README.md": [
        "installs the package; tests/docs/test_wheel.py does it",
        "takes minutes; the tutorial runs it on fewer records",
        "the files are yours",
    ],
    "docs/tutorial/index.md": ["installs packages"],
    "docs/how-to/move-to-spark.md": ["needs Java and installs packages", "needs Java"],
    "docs/how-to/table-builder-behind-a-proxy.md": [
        "a configuration of nginx",
        "a unit of systemd",
        "a configuration of Prometheus",
    ],
    "docs/how-to/run-in-a-container.md": ["needs podman or docker"] * 3,
}


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def ordinary_or_long(page: Path) -> Any:
    """A page as an argument of a test; some take long."""
    return pytest.param(page, marks=[pytest.mark.long] if page.name in LONG else [], id=name(page))


@pytest.mark.parametrize("page", [ordinary_or_long(page) for page in PAGES])
def test_every_block_runs(page: Path, tmp_path: Path) -> None:
    said: str | None = None
    with session(tmp_path) as one:
        for block in blocks(page):
            assert block.language in LANGUAGES, f"{block.language}: not a language that is run"
            if block.treatment == "not run":
                said = None
            elif block.language in {"text", ""}:
                assert said is not None, f"no output is expected here:\n{block.text}"
                assert missing_line(block.text, said) is None, (
                    f"{block.text}\nis not what was printed:\n{said}"
                )
            else:
                said = one.run(block) or said


def test_what_is_not_run_is_listed_with_a_reason() -> None:
    found = {
        name(page): [one.argument for one in blocks(page) if one.treatment == "not run"] for page in PAGES
    }
    assert {page: reasons for page, reasons in found.items() if reasons} == NOT_RUN


def test_every_block_is_read() -> None:
    for page in PAGES:
        assert page.read_text(encoding="utf-8").count("```") == 2 * len(blocks(page)), page


def test_output_is_compared_by_its_shape() -> None:
    printed = "release: 1 cube, 72 published cells.\nPrivate manifest: x\n"
    assert missing_line("release: 1 cube, 80 published cells.\n", printed) is None
    assert missing_line("...\nPrivate manifest: x\n", printed) is None
    assert (
        missing_line("release: 1 cube, 80 printed cells.\n", printed) == "release: 1 cube, 80 printed cells."
    )
    assert missing_line("Private manifest: x\nrelease: 1 cube, 72 published cells.", printed) is not None
