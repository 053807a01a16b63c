"""Update the message catalogues from the source: ``make messages``.

Every ``phrase("..")`` in the source is a message. The ``.po`` file of a language is what translators edit; it has no
dates and no line numbers, so that it changes only where a message does. The ``.mo`` file is compiled from it and is
what the program reads.
"""

from __future__ import annotations

import io
import sys
from functools import cache
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_file
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

SOURCE = Path(__file__).parents[1] / "src" / "discreet"
LOCALE = SOURCE / "text" / "locale"


class Messages(Catalog):
    """A catalogue whose header has neither dates nor names of people."""

    @property
    def mime_headers(self) -> list[tuple[str, str]]:
        """What the header lists."""
        return [
            ("Project-Id-Version", "discreet"),
            ("Language", str(self.locale)),
            ("MIME-Version", "1.0"),
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Transfer-Encoding", "8bit"),
        ]


@cache
def extracted() -> frozenset[str]:
    """Every template in the source."""
    using = [path for path in SOURCE.rglob("*.py") if "phrase(" in path.read_text(encoding="utf-8")]
    found = (message for path in using for message in extract_from_file("python", path, {"phrase": None}))
    return frozenset(str(message) for _, message, _, _ in found)


def updated(path: Path) -> Messages:
    """The catalogue with every template of the source and no other; a new template has no translation yet."""
    with path.open("rb") as file:
        old = read_po(file, locale=path.parents[1].name)
    new = Messages(
        locale=old.locale, fuzzy=False, header_comment="# Messages of Discreet; updated by make messages."
    )
    for template in extracted():
        before = old.get(template)
        new.add(template, before.string if before and not before.fuzzy else "")
    return new


def as_po(messages: Messages) -> bytes:
    """The text that translators edit, one line per message, sorted."""
    file = io.BytesIO()
    write_po(file, messages, width=0, sort_output=True)
    return file.getvalue()


def as_mo(messages: Messages) -> bytes:
    """What the program reads."""
    file = io.BytesIO()
    write_mo(file, messages)
    return file.getvalue()


def main() -> int:
    """Write all catalogues; 1 where a message has no translation."""
    missing = 0
    for path in sorted(LOCALE.rglob("*.po")):
        messages = updated(path)
        path.write_bytes(as_po(messages))
        path.with_suffix(".mo").write_bytes(as_mo(messages))
        for message in messages:
            if message.id and not message.string:
                missing += 1
                sys.stderr.write(f"{path.relative_to(SOURCE)}: not translated: {message.id}\n")
    return min(missing, 1)


if __name__ == "__main__":
    sys.exit(main())
