"""The page says the labels of the built-in programme in the reader's language only while it knows their words."""

import re
from importlib.resources import files

from discreet.programme import eu2021


def known(kind: str) -> dict[str, str]:
    source = (files("discreet.serve.page") / "files" / "texts" / "en.js").read_text("utf-8")
    return dict(re.findall(rf'^  "{kind}\.([^"]+)": "([^"]+)",$', source, re.MULTILINE))


def test_the_page_knows_the_label_of_every_variable() -> None:
    labels = {name: eu2021.label(name) for name in eu2021.variables()}
    topics = known("topic")
    assert {name: topics.get(name) for name in labels} == labels


def test_the_page_knows_the_label_of_every_level() -> None:
    labels = {
        f"{name}.{level}": label
        for name in eu2021.variables()
        for level, label in eu2021.breakdown_labels(name).items()
    }
    assert known("level") == labels
