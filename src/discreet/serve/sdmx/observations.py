"""Answers to SDMX keys as observations of a dataflow."""

from __future__ import annotations

from dataclasses import replace

from discreet.formats.dataset import DatasetAxis
from discreet.formats.sdmx_data import Detail, Observations
from discreet.serve.answer import Answer
from discreet.serve.catalogue import Catalogue
from discreet.serve.dataset import dataset_of, keys_only
from discreet.serve.sdmx.registry import Dimension, Flow, Pick
from discreet.text.phrase import said


def observations(
    flow: Flow, pick: Pick, answer: Answer, detail: Detail, catalogue: Catalogue
) -> Observations:
    """The observations of an answer to a pick."""
    dataset = dataset_of(answer, catalogue, title=said(_title(flow), answer.language), table=flow.table.id)
    axes = tuple(replace(axis, ids=codes) for axis, codes in zip(dataset.axes, pick.codes, strict=True))
    named = replace(dataset, axes=axes, agency=flow.agency, version=flow.version)
    return Observations(named, pick.inside, detail)


def keys_without_values(flow: Flow, pick: Pick) -> Observations:
    """The keys without values, which need no question to the table builder."""
    dataset = keys_only(
        table=flow.table.id,
        title=str(_title(flow)),
        agency=flow.agency,
        version=flow.version,
        axes=tuple(map(_axis, flow.dimensions, pick.codes)),
    )
    return Observations(dataset, pick.inside, Detail.KEYS)


def _title(flow: Flow) -> str:
    return flow.table.title or flow.table.id


def _axis(dimension: Dimension, ids: tuple[str, ...]) -> DatasetAxis:
    axis = dimension.axis
    codes = tuple(dimension.codes[one] for one in ids)
    return DatasetAxis(
        variable=axis.variable,
        name=str(dimension.name),
        label=str(dimension.name),
        codes=codes,
        labels=tuple(str(axis.labels[axis.position[code]]) for code in codes),
        parents=("",) * len(codes),
        ids=ids,
    )
