"""Phrases that are withdrawn stay out of what people read: docstrings, messages, help, pages, translations, docs.

``docs/contribute/writing.md`` explains them; ``ALLOWED`` lists the places where such a word is a name.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.source_rules import nodes, tree

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "discreet"
SCRIPT_TEXT = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*|\"[^\"\n]* [^\"\n]*\"|`[^`]* [^`]*`", re.DOTALL)
ENGLISH_MESSAGE = re.compile(r'^msgid "(.+)"$', re.MULTILINE)

ENFORCED = {  # pattern -> what to write instead
    r"(those|everybody|people) (who have|with) (an? )?(API )?tokens?": "an API token is required",
    r"(books?|database|store|server) (is|are|was|were) away|reach (its|the|their) books?": "database unavailable",
    r"c[oa]mes? out true": "is recovered exactly",
    r"\bis asked\)": "(limit 0.68)",
    r"in a blink": "how fast, or why it is fast",
    r"\bwanting\b": "missing; fails the check",
    r"\bworded\b|\bwords (a|all|each|every|the)\b": "is written, formats",
    r"\bforeseen\b": "supported, planned",
    r"\bstands? in for\b": "replaces, represents",
    r"\bsent away\b": "rejected, answered with 503",
    r"\bto be had\b": "available",
    r"taken? for granted": "assumed",
    r"\bstrangers?\b": "anonymous users, the public",
    r"\b(every|other|each|which|a) doors?\b": "API, interface",
    r"\bpurse\b": "budget",
    r"\bnonsense\b": "invalid",
    r"\w's? matter\b|\bno matter of\b": "responsibility of",
    r"\b(whom(so)?ever|whosoever|whence|hitherto|hereof|thereof|therein|thereby)\b": "ordinary English",
    r"\balone\b": "only",
    r"\b(tells?|told|telling)\b": "shows, reports, states",
    r"\b(says?|said|saying)\b": "shows, reports, states",
    r"\b(stands?|stood)\b": "is, is in, appears, occurs",
    r"\bowns\b": "drop the sentence; say what the thing does",
    r"\b(held|kept)\b": "stored, cached, counted",
    r"\bg[ia]ven?s?( \w+)? away\b": "discloses, reveals",
    r"\bbooks?\b": "database, store, ledger",
    r"\b(some|any|every|no)body\b|\bwhoever\b": "a person, a user, an attacker, no one",
    r"\bat hand\b": "available",
    r"\bthere is none\b": "is missing; no such file",
    r"\bdesk\b": "worker pool",
    r"\bc[oa]mes? out\b": "results, is recovered",
    r"\bput together\b": "computed, assembled",
    r"\banew\b|\bonce more\b": "again",
    r"\b(is|are|was|were) (wanted|asked for|called for)\b": "is requested, is required",
    r"\bfrom which on\b|\bfrom \d+ on\b": "the smallest .. that; at least",
    r"\bthe truth\b": "the true count, the confidential counts",
    r"\bnothing but\b": "only",
    r"\b(forgets?|forgotten)\b": "deletes, evicts",
    r"\bhands? (over|out)\b": "passes, yields",
}
ALLOWED = (  # names of options and keys, titles of papers' rows, and sentences of releases that are pinned byte by byte
    "alone = false",
    "gates.posterior.alone",
    "--zeros-kept",
    "ept zeros",
    "`kept`, `share_kept`",
    "`say`",
    "nobody was counted there",
    "is kept secret",
    "does not tell with certainty",
)


@cache
def texts() -> tuple[tuple[str, str, str], ...]:
    """Every text that people read."""
    return tuple(found_texts())


def found_texts() -> Iterator[tuple[str, str, str]]:
    """Part of the project, place and text, of everything that people read; white space is one blank."""
    for path in sorted(SOURCE.rglob("*")):
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        found: list[tuple[int | str, str]] = []
        if path.suffix == ".py":
            strings = (node for node in nodes(tree(path)) if isinstance(node, ast.Constant))
            found = [
                (node.lineno, node.value)
                for node in strings
                if isinstance(node.value, str) and " " in node.value
            ]
        elif path.suffix in {".js", ".css"}:
            found = [("", one) for one in SCRIPT_TEXT.findall(path.read_text(encoding="utf-8"))]
        elif path.suffix == ".po":
            found = [("", one) for one in ENGLISH_MESSAGE.findall(path.read_text(encoding="utf-8"))]
        elif path.suffix == ".html":
            found = [("", path.read_text(encoding="utf-8"))]
        yield from (
            (part, f"{path.relative_to(ROOT)}:{line}", " ".join(text.split())) for line, text in found
        )
    docs = ROOT / "docs"
    generated = {
        docs / "reference" / name for name in ("commands.md", "inference-coverage.md", "api/types.md")
    }
    list_of_words = docs / "contribute" / "writing.md"
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if path not in generated and path != list_of_words:
            yield "docs", f"{path.relative_to(ROOT)}", " ".join(path.read_text(encoding="utf-8").split())
    unreleased = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
    yield "CHANGELOG", "CHANGELOG.md", " ".join(unreleased.split())


def without_allowed(text: str) -> str:
    for name in ALLOWED:
        text = text.replace(name, "")
    return text


def occurrences(pattern: str, text: str) -> list[str]:
    """Each occurrence with some text around it."""
    text = without_allowed(text)
    return [
        text[max(0, found.start() - 40) : found.end() + 40]
        for found in re.finditer(pattern, text, re.IGNORECASE)
    ]


def test_no_withdrawn_phrase_is_used() -> None:
    together = "\n".join(text for _, _, text in texts())  # no pattern matches the end of a line
    found = [
        f"{place}: ..{one}.. (write: {instead})"
        for pattern, instead in ENFORCED.items()
        if occurrences(pattern, together)
        for _, place, text in texts()
        for one in occurrences(pattern, text)
    ]
    assert not found, "\n".join(["see docs/contribute/writing.md", *found])


def test_every_kind_of_text_is_read() -> None:
    read = {Path(place.split(":")[0]).suffix for _, place, _ in texts()}
    assert read == {".py", ".js", ".css", ".po", ".html", ".md"}


@pytest.mark.parametrize(
    "text",
    [
        "Answer tables to those who have a token alone.",
        "averaging: 489 counts attacked, 170 expected to come out true (138 are published so)",
        "with V = 0.6 the mean is the truth with probability 0.639 (below 0.68 is asked)",
        "The server cannot reach its books; try again later.",
        "Works on a few answers at once and lets some wait; more are sent away at once.",
    ],
)
def test_sentences_that_were_withdrawn_are_found(text: str) -> None:
    assert any(occurrences(pattern, text) for pattern in ENFORCED)
