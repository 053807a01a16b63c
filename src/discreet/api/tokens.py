"""API tokens of a table builder."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from discreet.api.arguments import names_arguments
from discreet.api.drawings import shown
from discreet.api.tables import summary_frame
from discreet.errors import mistake
from discreet.page.markup import Column, Html, table
from discreet.serve.http.tokens import Role, Token, create_token, read_tokens, revoke_token

if TYPE_CHECKING:
    import pandas as pd


class Tokens:
    """The tokens of a table builder, stored as hashes in a file: make, list and revoke them.

    >>> import discreet as ds
    >>> tokens = ds.Tokens(getfixture("tmp_path") / "tokens.json")
    >>> token = tokens.create("statistics", role="trusted")
    >>> [(one.name, one.role.value) for one in tokens.listed()]
    [('statistics', 'trusted')]
    >>> tokens.revoke("statistics")
    >>> tokens.listed()
    ()
    """

    def __init__(self, path: str | Path) -> None:
        """The tokens of a file, which is created with the first one; ``serve(.., tokens=path)`` reads it."""
        self.path = Path(path)

    @names_arguments
    def create(self, name: str, *, role: Literal["public", "trusted", "admin"] = "public") -> str:
        """Make a token and return it: it is never shown again."""
        if role not in list(Role):
            raise mistake("", "role", repr(role), f"choose from {', '.join(Role)}")
        return create_token(self.path, name, Role(role), datetime.now(UTC).isoformat(timespec="seconds"))

    @names_arguments
    def listed(self) -> tuple[Token, ...]:
        """The owners of tokens, with their roles."""
        return read_tokens(self.path)

    @names_arguments
    def revoke(self, name: str) -> None:
        """Revoke a token; running servers notice at the next request."""
        revoke_token(self.path, name)

    def summary(self) -> str:
        """A line for each owner."""
        return "\n".join(f"{one.name}: {one.role.value}, since {one.created}" for one in self.listed())

    def to_pandas(self) -> pd.DataFrame:
        """The owners as a pandas data frame."""
        return summary_frame(
            [{"name": one.name, "role": one.role.value, "created": one.created} for one in self.listed()],
            ["name", "role", "created"],
        )

    def __repr__(self) -> str:
        return f"Tokens({str(self.path)!r})"

    def _repr_html_(self) -> Html:
        rows = [(one.name, one.role.value, one.created) for one in self.listed()]
        return shown([table("Tokens", [Column("name"), Column("role"), Column("created")], rows)])
