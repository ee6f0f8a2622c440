"""`understudy config`: the settings that ship by name, and what each of them comes to."""

from __future__ import annotations

import textwrap
from typing import Annotated, Any

import msgspec
import typer

from understudy.cli.options import Json, SetOption, config_from
from understudy.cli.output import emit_labelled, out_width
from understudy.core import toml
from understudy.core.config import Config
from understudy.core.config.descriptions import settings
from understudy.core.config.section import Section
from understudy.telemetry.text import say, say_json

app = typer.Typer(no_args_is_help=True)

_WIDTH = 96


@app.callback()
def _config() -> None:
    """Settings by name, for `--config` of train and serve.

    Example: understudy config show curriculum --changed
    """


@app.command("list")
def list_(json: Json = False) -> None:
    """List the configs that ship, one line each.

    Example: understudy config list
    """
    from understudy.training.named_configs import names, summary

    words = {name: summary(name) for name in names()}
    if json:
        say_json(words)
        return
    emit_labelled(words.items(), label_width=max(map(len, words)) + 2)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="The name of a config, or a .toml file.")],
    set_: SetOption = None,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only what differs from the defaults.")
    ] = False,
    json: Json = False,
) -> None:
    """Print every setting of a config, resolved, with what it does: a file for `--config`.

    Example: understudy config show curriculum --changed
    """
    from understudy.training.named_configs import config

    chosen = config_from(set_ or [], base=config(name, flag="config show"), defaults={})
    table: dict[str, Any] = msgspec.to_builtins(chosen)
    if changed:
        table = _differing(table, Config)
    if json:
        say_json(table)
    else:
        say(toml.dumps(table, comment=_Words()).rstrip("\n"))


def _differing(table: dict[str, Any], section: type[Section]) -> dict[str, Any]:
    """What is not as it is by default, table by table."""
    found: dict[str, Any] = {}
    for one in settings(section):
        value = table[one.name]
        if one.section is None:
            changed = value != msgspec.to_builtins(one.default)
        else:
            if isinstance(value, dict):
                value = _differing(value, one.section)
            else:
                value = [_differing(entry, one.section) for entry in value]
            changed = bool(value)
        if changed:
            found[one.name] = value
    return found


class _Words:
    """The description of a setting, once: all stages have the same settings."""

    def __init__(self) -> None:
        self._told: set[toml.Path] = set()

    def __call__(self, path: toml.Path) -> str:
        if path in self._told:
            return ""
        self._told.add(path)
        section: type[Section] | None = Config
        words = ""
        for name in path:
            known = {one.name: one for one in settings(section)} if section else {}
            if name not in known:
                return ""  # a name of a person's own, such as a reward term
            section, words = known[name].section, known[name].words
        # A comment begins with two characters; in a file it is as wide as the source.
        return textwrap.fill(words, min(_WIDTH, (out_width() or _WIDTH) - 2))
