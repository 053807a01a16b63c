"""Theorems are cited by number only where the bibliography lists them: numbers are looked up, not remembered."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
CITED = re.compile(r"\b(theorem|proposition|lemma|corollary)\s+(\d+(?:\.\d+)*)", re.IGNORECASE)


def cited(text: str) -> set[str]:
    return {f"{kind.lower()} {number}" for kind, number in CITED.findall(text)}


def test_every_theorem_that_is_cited_by_number_is_in_the_bibliography() -> None:
    listed = cited((ROOT / "docs/explanation/bibliography.md").read_text(encoding="utf-8"))
    assert {"theorem 4.2", "theorem 7.1", "proposition 1.3"} <= listed
    unlisted = {
        (str(path.relative_to(ROOT)), name)
        for folder, ending in (("src", "py"), ("docs", "md"))
        for path in sorted((ROOT / folder).rglob(f"*.{ending}"))
        for name in cited(path.read_text(encoding="utf-8")) - listed
    }
    assert unlisted == set()
