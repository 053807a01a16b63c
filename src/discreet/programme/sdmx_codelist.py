"""Codelists out of SDMX structure messages: SDMX-ML 2.1 and 3.0, and SDMX-JSON, with their texts in all languages.

Only what a codelist needs is read: codes, names, descriptions, parents (of the codes, or of a hierarchy of the same
message) and the annotations CODE and SOURCE that Discreet writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import mistake
from discreet.lazy import lazily
from discreet.programme.codelist import TOTAL, Code
from discreet.programme.definitions import Definition
from discreet.programme.filter import alternatives
from discreet.text.phrase import translated

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET
    from xml.etree.ElementTree import Element
else:
    ET = lazily("xml.etree.ElementTree")

_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
Texts = Mapping[str, str]  # language -> text


@dataclass(frozen=True)
class _Item:
    """One code of a message."""

    id: str
    names: Texts
    descriptions: Texts
    parent: str = ""
    code: str = ""  # as declared, where SDMX cannot write it
    sources: Texts = field(default_factory=dict)


@dataclass(frozen=True)
class _Message:
    """The codelists of a message, and the parents that its hierarchies give to codes."""

    codelists: Mapping[str, list[_Item]]
    above: Mapping[str, Mapping[str, str]]  # codelist -> code -> parent


def read_sdmx_codes(path: Path, wanted: str = "", own: str = "en") -> list[Code]:
    """The codes of a codelist of a structure message; ``own`` is the language of the release."""
    message = _read(path)
    if not message.codelists:
        raise mistake(path, "", "has no codelist", "give a structure message with a codelist")
    if wanted not in message.codelists and (wanted or len(message.codelists) > 1):
        value = f"no codelist {wanted!r}" if wanted else f"has {len(message.codelists)} codelists"
        known = alternatives(wanted, list(message.codelists))
        raise mistake(
            path, "codelist", value, f'name one of them: {{ file = "{path.name}", id = ".." }}; {known}'
        )
    name = wanted or next(iter(message.codelists))
    items, above = message.codelists[name], message.above.get(name, {})
    spelled = {item.id: item.code or item.id for item in items}
    return list(_codes(items, above, spelled, own))


def _codes(
    items: Iterable[_Item], above: Mapping[str, str], spelled: Mapping[str, str], own: str
) -> Iterator[Code]:
    for item in items:
        code, parent = spelled[item.id], item.parent or above.get(item.id, "")
        if code == TOTAL:
            continue
        upper = spelled.get(parent, parent)
        definition = Definition(_worded(item.descriptions, own), _worded(item.sources, own))
        yield Code(code, "" if upper == TOTAL else upper, _worded(item.names, own), definition)


def _worded(texts: Texts, own: str) -> str:
    """The text in the language of the release, or in the first one, with the others as translations."""
    if not texts:
        return ""
    first = own if own in texts else next(iter(texts))
    return translated(texts[first], {tag: text for tag, text in texts.items() if tag not in (first, own)})


def _read(path: Path) -> _Message:
    try:
        content = path.read_bytes()
        return _from_json(json.loads(content)) if path.suffix.lower() == ".json" else _from_xml(content)
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise mistake(path, "", f"cannot be read: {reason}", "correct the path of the codelist") from None
    except (ValueError, ET.ParseError, AttributeError, LookupError, TypeError, RecursionError):
        raise mistake(path, "", "is no SDMX structure message", "give SDMX-ML, SDMX-JSON or CSV") from None


def _from_xml(content: bytes) -> _Message:
    root = ET.fromstring(content)  # the office's own file; expat limits entities
    lists = {
        one.get("id", ""): [_xml_item(code) for code in _children(one, "Code")]
        for one in root.iter()
        if _name(one) == "Codelist"
    }
    above: dict[str, dict[str, str]] = {}
    for upper in (one for one in root.iter() if _name(one) == "HierarchicalCode"):
        for node in _children(upper, "HierarchicalCode"):
            _put(above, _urn(node), _urn(upper))
    return _Message({name: items for name, items in lists.items() if items}, above)


def _name(node: Element) -> str:
    return node.tag.rpartition("}")[2]


def _children(node: Element, name: str) -> Iterator[Element]:
    return (one for one in node if _name(one) == name)


def _xml_item(node: Element) -> _Item:
    parent = next(_children(node, "Parent"), None)
    named = "" if parent is None else (parent.text or "").strip()
    reference = None if parent is None else next(_children(parent, "Ref"), None)
    notes = {
        kind: _xml_texts(note, "AnnotationText")
        for holder in _children(node, "Annotations")
        for note in _children(holder, "Annotation")
        for kind in [next((one.text or "" for one in _children(note, "AnnotationType")), "")]
    }
    return _Item(
        node.get("id", ""),
        _xml_texts(node, "Name"),
        _xml_texts(node, "Description"),
        named if reference is None else reference.get("id", ""),
        next(iter(notes.get("CODE", {}).values()), ""),
        notes.get("SOURCE", {}),
    )


def _xml_texts(node: Element, name: str) -> Texts:
    return {one.get(_LANG, "en"): " ".join((one.text or "").split()) for one in _children(node, name)}


def _urn(node: Element) -> str:
    return next(((one.text or "").strip() for one in _children(node, "Code")), "")


def _from_json(message: Mapping[str, Any]) -> _Message:
    data = message["data"]
    lists = {
        _text(one["id"]): [_json_item(code) for code in one.get("codes", ())]
        for one in data.get("codelists", ())
    }
    above: dict[str, dict[str, str]] = {}

    def follow(nodes: Iterable[Mapping[str, Any]], upper: str) -> None:
        for node in nodes:
            if upper:
                _put(above, node["code"], upper)
            follow(node.get("hierarchicalCodes", ()), node["code"])

    for hierarchy in data.get("hierarchies", ()):
        follow(hierarchy.get("hierarchicalCodes", ()), "")
    return _Message({name: items for name, items in lists.items() if items}, above)


def _json_item(code: Mapping[str, Any]) -> _Item:
    notes = {one.get("type", ""): _json_texts(one, "text") for one in code.get("annotations", ())}
    return _Item(
        _text(code["id"]),
        _json_texts(code, "name"),
        _json_texts(code, "description"),
        _text(code.get("parent", "") or ""),
        next(iter(notes.get("CODE", {}).values()), ""),
        notes.get("SOURCE", {}),
    )


def _json_texts(item: Mapping[str, Any], name: str) -> Texts:
    texts = item.get(f"{name}s") or ({"en": item[name]} if item.get(name) else {})
    return {_text(tag): _text(text) for tag, text in texts.items()}


def _text(value: object) -> str:
    """A text; a number or a list in its place makes the message invalid."""
    if not isinstance(value, str):
        raise TypeError
    return value


def _put(above: dict[str, dict[str, str]], below: str, upper: str) -> None:
    """Note the parent of a code, both given by URN: ...Code=AGENCY:CL_AGE(1.0).Y0-4."""
    codelist, _, code = below.rpartition("=")[2].partition("(")
    parent = upper.rpartition(").")[2]
    above.setdefault(codelist.rpartition(":")[2], {})[code.rpartition(").")[2]] = parent
