"""`understudy export`: a run's agent as a file that plays elsewhere, or its data as tables."""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.options import JsonAtEnd, check_folder
from understudy.cli.output import emit_labelled
from understudy.core.errors import ConfigError, nearest

if TYPE_CHECKING:
    from understudy.agents.files import ExportedFile
    from understudy.agents.loading import NamedPolicy

_TABLES = ("metrics", "episodes")
_FORMATS = ("csv", "parquet")
_KINDS = (*_TABLES, "module", "weights", "ai2", "ladder")
_CODE = ("module", "ai2")


@dataclass(frozen=True)
class _Request:
    """What a person asked for."""

    kind: str
    run: str | None
    out: Path
    format: str | None
    greedy: bool
    float16: bool
    bot: Path | None
    python: str | None
    platform: str | None
    force: bool
    json: bool

    def check(self) -> None:
        """Raises ConfigError for a wrong value, or a flag that this kind of export has no use
        for."""
        if self.kind not in _KINDS:
            raise ConfigError(
                f"--as: expected one of {', '.join(_KINDS)}, got {self.kind!r}."
                + nearest(self.kind, _KINDS)
            )
        if self.format is not None and self.format not in _FORMATS:
            raise ConfigError(
                f"--format: expected {' or '.join(_FORMATS)}, got {self.format!r}."
                + nearest(self.format, _FORMATS)
            )
        for flag, given, kinds in (
            ("--format", self.format is not None, _TABLES),
            ("--greedy", self.greedy, _CODE),
            ("--float16", self.float16, _CODE),
            ("--bot", self.bot is not None, ("ladder",)),
            ("--python", self.python is not None, ("ladder",)),
            ("--platform", self.platform is not None, ("ladder",)),
        ):
            if given and self.kind not in kinds:
                raise ConfigError(f"{flag}: goes with --as {' or '.join(kinds)} only")


def export(
    out: Annotated[Path, typer.Option("--out", "-o", help="The file, or folder, to write to.")],
    run: Annotated[
        str | None,
        typer.Argument(
            help="The run folder (default: the latest); of agents also RUN@VERSION, RUN@step-N."
        ),
    ] = None,
    as_: Annotated[
        str,
        typer.Option(
            "--as",
            help="module: one Python file that plays; ai2: the same for the tournament; ladder: a "
            "StarCraft II bot with all that it needs; weights: .npz; metrics: from the journal; "
            "episodes: every decision.",
        ),
    ] = "metrics",
    format_: Annotated[
        str | None, typer.Option("--format", help="Of tables: csv (the default) or parquet.")
    ] = None,
    greedy: Annotated[
        bool,
        typer.Option("--greedy", help="The agent takes the likeliest actions (default: it draws)."),
    ] = False,
    float16: Annotated[
        bool, typer.Option("--float16", help="Round the weights: half the size.")
    ] = False,
    bot: Annotated[
        Path | None,
        typer.Option(help="Of a ladder: the bot's own folder (default: my_bot for -o my_bot.zip)."),
    ] = None,
    python: Annotated[
        str | None, typer.Option(help="Of a ladder: the version of its Python (default: 3.12).")
    ] = None,
    platform: Annotated[
        str | None,
        typer.Option(help="Of a ladder: its platform (default: manylinux2014_x86_64)."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file, or an earlier export in the folder.")
    ] = False,
    json: JsonAtEnd = False,
) -> None:
    """Write the agent of a run as one file that plays elsewhere, or the data of a run as tables.

    A module needs Python 3.10 and NumPy, nothing else: `from agent import Agent`. It is the
    champion, unless a version is named; docs/export.md shows its use. Metrics are one file for each
    kind of event, episodes one row for each decision; docs/exports.md describes every column.

    Example: understudy export runs/brawl-1 --as module -o agent.py
    """
    request = _Request(as_, run, out, format_, greedy, float16, bot, python, platform, force, json)
    request.check()
    if as_ in _TABLES:
        _tables(request)
    elif as_ == "ladder":
        _ladder(request)
    else:
        _agent(request)


# --- agents --------------------------------------------------------------------------------------


def _agent(request: _Request) -> None:
    from understudy.agents.files import check_target, write_module, write_weights
    from understudy.agents.loading import named_policy
    from understudy.agents.module_file import plain_agent
    from understudy.registry.run_folder import latest
    from understudy.telemetry.text import complain, say_json

    weights = request.kind == "weights"
    check_target(request.out, ".npz" if weights else ".py", force=request.force)
    named = named_policy("RUN", request.run or latest().as_posix())
    if named.note:
        complain(named.note)
    if weights:
        written = write_weights(named, request.out)
    elif request.kind == "ai2":
        from understudy.adapters.ai2.submission import MOST_BYTES, submission

        agent = submission(named.policy.spec, named.folder.identity, greedy=request.greedy)
        written = write_module(
            named, request.out, agent, float16=request.float16, most_bytes=MOST_BYTES
        )
    else:
        agent = plain_agent(greedy=request.greedy)
        written = write_module(named, request.out, agent, float16=request.float16)
    if request.json:
        say_json(written)
    else:
        emit_labelled(_agent_rows(named, written), label_width=8)


def _agent_rows(named: NamedPolicy, written: ExportedFile) -> list[tuple[str, str]]:
    """What was written, and what to do with it."""
    from understudy.games import catalog
    from understudy.telemetry.text import plain, size

    policy, game = named.policy, named.folder.identity.game_name
    which = "a snapshot" if named.version is None else f"version {named.version}"
    count = sum(array.size for array in policy.weights.params.values())
    network = type(policy.spec.network).__name__
    rows = [
        ("Agent", f"{which} of {plain(written.run)}: {network}, {count:,} parameters"),
        ("Written", f"{plain(written.file)} ({size(written.bytes)})"),
    ]
    if written.what == "ai2":
        rows.append(("Submit", "copy it to user/my_agent.py in your checkout of the tournament"))
    if written.what != "module":
        return rows
    rows.append(("Use", f"{_made(Path(written.file))}; agent.act(features)"))
    if game in catalog.names() and catalog.make(game).players == 2:
        rows.append(("Judge", f"understudy eval {game} --agent {plain(written.file)}"))
    return rows


def _made(file: Path) -> str:
    """Python that makes the agent of a file: by importing it, where its name can be imported."""
    if file.stem.isidentifier() and not keyword.iskeyword(file.stem):
        return f"from {file.stem} import Agent; agent = Agent()"
    return f"import understudy; agent = understudy.load_agent({file.as_posix()!r})"


def _ladder(request: _Request) -> None:
    from understudy.adapters.sc2.bundle import LadderTarget, champion_of, pack
    from understudy.agents.loading import split_name
    from understudy.core.clock import SystemClock
    from understudy.registry.run_folder import RunFolder, latest
    from understudy.telemetry.text import say_json, size

    bot = request.bot or request.out.with_suffix("")
    root, which = split_name("RUN", request.run or latest().as_posix())
    if isinstance(which, str):
        raise ConfigError(f"RUN {request.run}: a ladder takes a version, RUN@VERSION")
    run = RunFolder.load(root, SystemClock())
    given = {"python": request.python, "platform": request.platform}
    target = LadderTarget(**{name: value for name, value in given.items() if value is not None})
    version = champion_of(run) if which is None else which
    packed = pack(run, version, bot, request.out, target, force=request.force)
    if request.json:
        say_json(packed)
        return
    plays = (
        "the rules play: no version is champion yet (RUN@VERSION packs one anyway)"
        if version is None
        else f"version {version} plays every match"
    )
    again = f"understudy import my_bot_data.zip --run {packed.run}"
    emit_labelled(
        [
            ("Bot", f"{bot} with {packed.run}: {plays}"),
            ("For", f"Python {packed.python}, {packed.platform}"),
            ("Folder", packed.folder),
            ("Written", f"{packed.file} ({size(packed.bytes)}): upload this"),
            ("Then", f"download the bot's data, and learn from it: {again}"),
        ],
        label_width=8,
    )


# --- tables --------------------------------------------------------------------------------------


def _tables(request: _Request) -> None:
    from understudy.cli.progress import working
    from understudy.core.clock import SystemClock
    from understudy.registry.run_folder import RunFolder, latest
    from understudy.screens.exports.export import ExportTarget, export_episodes, export_metrics
    from understudy.screens.exports.schema import ExportFormat
    from understudy.screens.exports.writing import check_installed
    from understudy.telemetry.journal import Reader
    from understudy.telemetry.text import say, say_json, size

    form: ExportFormat = "parquet" if request.format == "parquet" else "csv"
    check_installed(form)
    check_folder("--out", request.out)
    root = latest() if request.run is None else Path(request.run)
    folder = RunFolder.load(root, SystemClock())
    target = ExportTarget(folder=request.out, form=form, force=request.force)
    with working(f"{request.kind} of {folder.root}", quiet=request.json) as show:
        if request.kind == "metrics":
            entries = Reader(folder.journal).stream(progress=show)
            summary = export_metrics(folder, entries, target)
        else:
            summary = export_episodes(folder, target, progress=show)
    if request.json:
        say_json(summary)
        return
    for name, table in summary.tables.items():
        count = len(table.files)
        where = table.files[0] if count == 1 else f"{count} files"
        unit = "row " if table.rows == 1 else "rows"
        say(f"{name:<20} {table.rows:>10,} {unit}  {size(table.bytes):>10}  {where}")
    if summary.unreadable:
        first = summary.unreadable_files[0]
        say(f"{summary.unreadable:,} episodes are damaged and left out: {first}")
    say(f"Written to {request.out}")
