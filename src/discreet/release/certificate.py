"""The certificate of a release with a guarantee: every step from what is counted to what is claimed, for machines.

For each cross-tabulation: how many cells it has, what neighbours change in it, its share of the budget, the parameter
of its noise and the digest of the integers that are drawn, and what it costs; then the sums, as exact fractions.
``recompute`` checks all of it with code of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from discreet.hierarchy.mechanism import HierarchicalMechanism, measured_signatures
from discreet.maths.noise.exponential import UtilityLaw, UtilityTable
from discreet.maths.noise.hellinger import HellingerLaw
from discreet.maths.noise.thresholds import ThresholdTable, row_table
from discreet.maths.privacy.composition import Composition
from discreet.maths.tree.marginals import size_of
from discreet.perturb.budget import FIRST_ROWS, law_of, touched_by
from discreet.perturb.private import PrivateMechanism
from discreet.perturb.reach import change
from discreet.programme.cube import Cube, crosstabs
from discreet.release.recompute import digest_of

CERTIFICATE = "certificate.json"
KIND = "discreet certificate"
FORMAT_VERSION = 1


def certificate(chosen: PrivateMechanism, cubes: Iterable[Cube], name: str) -> str:
    """The certificate of a release as JSON; everything in it is public."""
    rule, plan = chosen.rule, chosen.plan
    sizes = {one.signature: one.size for cube in cubes for one in crosstabs(cube, chosen.codelists)}
    statistics = []
    for signature, parameter in plan.parameters.items():
        changed, reached = change(signature, rule), touched_by(signature, rule)
        per_change = reached.l2_squared if rule.is_gaussian else reached.l1
        entry: dict[str, Any] = {
            "statistic": str(signature),
            "cells": sizes[signature],
            "came": changed.came,
            "moved": changed.moved,
            "crossed": changed.crossed,
            "units": reached.l1 // changed.reach(rule.neighbours).l1,
            "l1": reached.l1,
            "l2_squared": reached.l2_squared,
            "largest": reached.largest,
            "parameter": str(parameter),
            "share": str(parameter * per_change),
            "distance": str(plan.distances.get(signature, Fraction(0))),
        }
        if not rule.is_gaussian:
            entry["delta"] = str(plan.certified(parameter, reached))
        statistics.append(entry)
    guarantee = chosen.noise().guarantee
    if guarantee is None:
        raise ValueError("a certificate states a guarantee")
    total = {"rho": guarantee.rho} if rule.is_gaussian else {"epsilon": guarantee.epsilon}
    document = {
        "kind": KIND,
        "format_version": FORMAT_VERSION,
        "release": name,
        "noise": rule.kind.value,
        "bound": rule.bound,
        **({} if rule.utility is None else {"utility": _utility(rule.utility)}),
        **({} if rule.composition is Composition.BASIC else {"composition": rule.composition.value}),
        "neighbours": rule.neighbours.value,
        "protects": rule.protects.value,
        "largest_household": rule.largest_household,
        "fixed": list(guarantee.fixed),
        "tables": [_table(chosen, parameter) for parameter in sorted(plan.tables)],
        "statistics": statistics,
        "total": {
            **{measure: str(value) for measure, value in total.items()},
            "delta": str(guarantee.delta),
            "distance": str(guarantee.distance),
        },
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def hierarchical_certificate(chosen: HierarchicalMechanism, name: str) -> str:
    """The certificate of a hierarchical release: what each kind of area spends, and every path from the root.

    A record is in one area of each level: what it costs is the sum along its path, and each path costs the same.
    """
    rule, plan = chosen.rule, chosen.plan
    reached, guarantee = chosen.reach, chosen.noise().guarantee
    if guarantee is None:
        raise ValueError("a certificate states a guarantee")
    changes = [change(one, rule) for one in measured_signatures(chosen.hierarchy)]
    widest = max(changes, key=lambda one: one.reach(rule.neighbours).l2_squared)
    basis, levels = plan.strategy.histogram.basis, plan.spine.levels
    areas = np.bincount(plan.kind_of, minlength=len(plan.kinds)).tolist()
    tables: dict[Fraction, ThresholdTable] = {}
    statistics = []
    for number, kind in enumerate(plan.kinds):
        for query, law, table, marginal in zip(
            kind.queries, kind.laws, kind.tables, kind.marginals, strict=True
        ):
            parameter = law.parameter or Fraction(0)
            tables[parameter] = table
            cells = size_of(basis, marginal)
            entry: dict[str, Any] = {
                "statistic": f"{'+'.join(levels[kind.top : kind.bottom + 1])}: {query}",
                "kind": number,
                "areas": areas[number],
                "cells": cells * areas[number],
                "came": widest.came,
                "moved": widest.moved,
                "crossed": widest.crossed,
                "units": 1,
                "l1": reached.l1,
                "l2_squared": reached.l2_squared,
                "largest": reached.largest,
                "parameter": str(parameter),
                "share": str(plan.strategy.part(law)),
                "distance": str(
                    areas[number] * cells * table.total_variation() if rule.is_gaussian else Fraction(0)
                ),
            }
            if not rule.is_gaussian:
                entry["delta"] = str(reached.l1 * table.delta_per_change(parameter, reached.largest))
            statistics.append(entry)
    total = {"rho": guarantee.rho} if rule.is_gaussian else {"epsilon": guarantee.epsilon}
    document = {
        "kind": KIND,
        "format_version": FORMAT_VERSION,
        "release": name,
        "noise": rule.kind.value,
        "bound": None,
        "neighbours": rule.neighbours.value,
        "protects": rule.protects.value,
        "largest_household": rule.largest_household,
        "fixed": list(guarantee.fixed),
        "tables": [{"parameter": str(one), "rows": [_row(tables[one])]} for one in sorted(tables)],
        "statistics": statistics,
        "paths": [{"kinds": list(path), "areas": number} for path, number in chosen.paths.items()],
        "total": {
            **{measure: str(value) for measure, value in total.items()},
            "delta": str(guarantee.delta),
            "distance": str(guarantee.distance),
        },
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _table(chosen: PrivateMechanism, parameter: Fraction) -> dict[str, object]:
    """The integers of one noise parameter; of a law that depends on the count, those of the first counts."""
    law = law_of(chosen.rule, parameter)
    if isinstance(law, HellingerLaw):
        rows = [row_table(law, count) for count in range(FIRST_ROWS)]
    elif isinstance(law, UtilityLaw):
        rows = [row_table(law, count) for count in range(law.table.last + 2)]
    else:
        rows = [chosen.plan.tables[parameter]]
    return {"parameter": str(parameter), "rows": [_row(table) for table in rows]}


def _utility(table: UtilityTable) -> list[dict[str, object]]:
    return [{"first": row.first, "utilities": [str(value) for value in row.values]} for row in table.rows]


def _row(table: ThresholdTable) -> dict[str, object]:
    thresholds = list(accumulate(table.numbers))[:-1]
    return {"first": table.first, "last": table.last, "sha256": digest_of(table.first, thresholds)}
