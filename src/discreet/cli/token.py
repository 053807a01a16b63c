"""``discreet token``: make, list and revoke API tokens of a table builder."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import JSON, emit_json, say
from discreet.serve.http.tokens import Role, create_token, read_tokens, revoke_token

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

FILE = Annotated[Path, typer.Argument(help="The file of tokens.")]
NAME = Annotated[str, typer.Argument(help="The owner of the token.")]


@app.command()
def create(
    file: FILE,
    name: NAME,
    role: Annotated[Role, typer.Option("--role", help="public, trusted or admin.")] = Role.PUBLIC,
    json: JSON = False,
) -> None:
    """Make a token and show it once; the file stores its hash."""
    token = create_token(file, name, role, datetime.now(UTC).isoformat(timespec="seconds"))
    if json:
        emit_json({"name": name, "role": role.value, "token": token})
    else:
        typer.echo(token)


@app.command("list")
def list_tokens(file: FILE, json: JSON = False) -> None:
    """List the owners of tokens with their roles."""
    found = [{"name": one.name, "role": one.role.value, "created": one.created} for one in read_tokens(file)]
    if json:
        emit_json({"tokens": found})
        return
    for one in found:
        say(f"{one['name']}: {one['role']}, since {one['created']}")


@app.command()
def revoke(file: FILE, name: NAME) -> None:
    """Revoke a token; running servers notice at the next request."""
    revoke_token(file, name)
    say(f"{name}: revoked.")
