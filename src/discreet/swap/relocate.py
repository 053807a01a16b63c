"""What a finished swap changes in each unit's table, ready for its reader; it reads no records but to follow links."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.engine.sources import open_source
from discreet.population.block import Codes
from discreet.population.relocation import Relocation
from discreet.schema.programme import Programme, Unit, Variable
from discreet.swap.links import unit_link
from discreet.swap.result import Moves
from discreet.swap.tables import codes_of, leaves_of


@dataclass(frozen=True)
class Relocations:
    """The moves of one population, for whichever of its tables is read."""

    programme: Programme
    moves: Moves
    secret: bytes

    def of(self, unit: Unit) -> Relocation | None:
        """What moves in a unit's table; None where it holds no place."""
        rule = self.programme.population
        if rule is None:
            return None
        tables = {name: open_source(held.source, f"population.{name}") for name, held in rule.units.items()}
        link = unit_link(unit.name, tables, rule, self.moves, self.secret)
        if link is None:
            return None
        columns = tables[unit.name].schema.names
        return Relocation(link.column, link.moves_of, self._leaves(unit, columns))

    def _leaves(self, unit: Unit, columns: list[str]) -> dict[str, Codes]:
        """Variable -> move -> leaf, for the variables that stand in exchanged columns."""
        return {
            name: self._encoded(variable)
            for name, variable in self.programme.variables.items()
            if variable.column in self.moves.values
            and variable.column in columns
            and (variable.units is None or unit.name in variable.units)
        }

    def _encoded(self, variable: Variable) -> Codes:
        leaves = leaves_of([variable])[variable.name]
        return codes_of(variable, leaves, self.moves.values[variable.column], "the exchanged places")
