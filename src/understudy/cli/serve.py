"""`understudy serve`: a live game sends what it sees and gets decisions, while a learner learns."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.options import JsonAtEnd, NewRun, WithDashboard, config_from
from understudy.cli.output import commands, summary_row
from understudy.cli.progress import ProgressDisplay, ProgressLine
from understudy.core.dependencies import install_line, not_installed
from understudy.core.errors import ConfigError, MissingDependency, nearest
from understudy.telemetry.layout import Part, Width
from understudy.telemetry.report_parts import learned_from
from understudy.telemetry.text import duration

if TYPE_CHECKING:
    from understudy.core.config import Config
    from understudy.policy.spec import AnyNetwork
    from understudy.registry.run_folder import RunFolder
    from understudy.run.serve import ServeProgress, ServeSummary
    from understudy.session.translation import Translator

LEARNERS = ("process", "off")
PROMOTIONS = ("latest", "auto")
NEEDS = (
    "starlette", "uvicorn", "websockets", "prometheus_client", "filelock", "threadpoolctl",
)  # fmt: skip
_TERRITORY = "territory"
_CONFIG = "live"
_REMEMBER_S = 30.0
"""Seconds between versions where the network has memory: each version empties the memory of all
territories, so at the default of two a second there would be none."""


def serve(
    game: Annotated[str | None, typer.Argument(help="A built-in live game: territory.")] = None,
    schema: Annotated[
        Path | None, typer.Option(help="A game of your own instead: a TOML file that declares it.")
    ] = None,
    run: NewRun = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 8765,
    gate: Annotated[
        str | None,
        typer.Option(help="open, cost, rollout or module:Name (default: cost; --schema: open)."),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="The gate sends what it expects more than this from.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="A file with the token that clients have to know.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="A certificate, for wss://.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key.")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy in front of this server speaks TLS.")
    ] = False,
    address_header: Annotated[
        str | None,
        typer.Option(help="With --behind-proxy: the header in which it tells a client's address."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="Pages that may connect: https://a.b. Repeatable.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Another name of this server. Repeatable.")
    ] = None,
    learner: Annotated[
        str | None,
        typer.Option(help="process (the default), or off to serve and record; --relay: off."),
    ] = None,
    relay: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="The learner is elsewhere: a store between both (see `relay`)."
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N", help="One of N servers of a game: 0/3 has a third of the territories."
        ),
    ] = None,
    promotion: Annotated[
        str | None,
        typer.Option(
            help="latest: the newest version decides. auto: the rules, until one is better "
            "(default: the run's; latest)."
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            help="With auto: the lowest and highest mean reward, low,high (default: the schema's)."
        ),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(help="The network of a new run (default: mlp; territory: pointer)."),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(help="Settings by name, or a .toml file (default: the run's; see `config`)."),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting: live.queue=128. Repeatable.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seeds decisions and learning (default: chance).")
    ] = None,
    dashboard: WithDashboard = False,
    json: JsonAtEnd = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No line that moves.")] = False,
) -> None:
    """Serve decisions to a live game over WebSockets, and learn from what comes of them.

    Ctrl-C answers what is in flight, lets the learner finish and exits with code 130; pressed
    again, it does not wait for the learner.

    Example: understudy serve territory --run runs/queen --port 8765
    """
    translator, label = _game(game, schema)
    learner = learner or ("process" if relay is None else "off")
    _check(learner, port)
    _check_relay(relay, learner)
    if missing := not_installed(*NEEDS):
        raise MissingDependency(f"serve needs {', '.join(missing)}: {install_line('serve')}")
    from understudy.policy.presets import network as network_named
    from understudy.registry.run_folder import RunFolder, new_run, newest
    from understudy.run.serve import serve as serve_game
    from understudy.run.server_wiring import ServeOptions
    from understudy.session.shards import parse_shard
    from understudy.supervise.dashboard import dashboard_beside
    from understudy.training.named_configs import config as config_named
    from understudy.web.auth import read_token
    from understudy.web.listening import tls_of

    before = RunFolder.kept(run)
    base = before.config if before and not config else config_named(config or _CONFIG)
    new = network_named(network or ("mlp" if schema else "pointer"), flag="--network")
    own = {} if before else _defaults(new, base)
    if seed is not None:
        own["learner.seed"] = seed
    if threshold is not None:
        own["live.threshold"] = threshold
    if promotion is not None:
        own["live.promotion"] = _promotion(promotion)
    declared = getattr(translator, "score", None)  # of a schema
    if score is not None or declared is not None:
        own["live.score"] = declared if score is None else _score(score)
    settings = config_from(set_ or [], base=base, defaults=own)
    if relay is not None and settings.live.promotion == "auto":
        own["promotion.judge"] = "learner"
        settings = config_from(set_ or [], base=base, defaults=own)
    _check_judge(settings, before, relay=relay is not None, learner=learner)
    options = ServeOptions(
        translator=translator,
        game=label,
        run=run or new_run(translator.name.replace(" ", "-")),
        network=before.spec.network if before and network is None else new,
        config=settings,
        gate=gate or ("open" if schema else "cost"),
        seed=seed,
        learner=learner,  # type: ignore[arg-type]  # checked above
        relay=relay,
        shard=None if shard is None else parse_shard(shard, flag="--shard"),
        host=host,
        port=port,
        token=None if token_file is None else read_token(token_file),
        tls=tls_of(tls_cert, tls_key),
        behind_proxy=behind_proxy,
        address_header=address_header,
        allow_hosts=tuple(allow_host or ()),
        allow_origins=tuple(allow_origin or ()),
    )
    with ProgressDisplay(quiet=json, before=newest(before)) as display:

        def started(address: str) -> None:
            display.note_wrapped(
                f"understudy: {label} at {address}, run folder {options.run}. Ctrl-C ends."
            )

        def show(progress: ServeProgress) -> None:
            for line in progress.news:
                display.note_wrapped(line)
            if not quiet:
                display.show(_line(progress))

        with dashboard_beside(options.run, wanted=dashboard):
            summary = serve_game(options, started=started, show=show)
        display.end(
            summary, lambda width: "\n".join(_summary(summary, width)), run=summary.status.run
        )


def _game(name: str | None, schema: Path | None) -> tuple[Translator, str]:
    """The translator, and the game's name in the run folder."""
    if (name is None) == (schema is None):
        raise ConfigError(f"give a game ({_TERRITORY}) or --schema FILE, one of them")
    if schema is not None:
        from understudy.session.schema import load

        declared = load(schema)
        return declared, declared.name
    if name != _TERRITORY:
        raise ConfigError(
            f"serve: expected {_TERRITORY}, got {name!r}; a game of your own is declared in a "
            f"file: --schema my_game.toml.{nearest(str(name), [_TERRITORY])}"
        )
    from understudy.adapters.territory.translator import TerritoryTranslator
    from understudy.games import catalog

    return TerritoryTranslator(), f"{_TERRITORY} {catalog.make(_TERRITORY).version}"


def _defaults(network: AnyNetwork, base: Config) -> dict[str, object]:
    """Settings of a new run that depend on its network, unless the config sets them."""
    from understudy.core.config import LearnerConfig
    from understudy.core.ops import NUMPY

    usual = base.learner.publish_interval_s == LearnerConfig().publish_interval_s
    if not usual or not network.memory(NUMPY, 1):
        return {}
    return {"learner.publish_interval_s": _REMEMBER_S}


def _promotion(name: str) -> str:
    if name not in PROMOTIONS:
        raise ConfigError(
            f"--promotion: expected one of {list(PROMOTIONS)}, got {name!r}."
            f"{nearest(name, PROMOTIONS)}"
        )
    return name


def _score(text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError as error:
        raise ConfigError(f"--score: expected two numbers, low,high, got {text!r}") from error
    if not -math.inf < low < high < math.inf:
        raise ConfigError(
            f"--score: expected two finite numbers, the lower one first, got {text!r}"
        )
    return low, high


def _check(learner: str, port: int) -> None:
    if learner not in LEARNERS:
        raise ConfigError(
            f"--learner: expected one of {list(LEARNERS)}, got {learner!r}."
            f"{nearest(learner, LEARNERS)}"
        )
    if not 0 <= port <= 65_535:
        raise ConfigError(f"--port: expected 0 to 65535, got {port}")


def _check_relay(relay: str | None, learner: str) -> None:
    """Before anything is made: what is wrong with an address must not go by in a child's log."""
    if relay is None:
        return
    if learner != "off":
        raise ConfigError("--learner: expected off together with --relay: the learner is elsewhere")
    from understudy.relay.stores import open_store

    open_store(relay)


def _check_judge(settings: Config, before: RunFolder | None, *, relay: bool, learner: str) -> None:
    """Segments are judged where the learner is, in one log from the first one on."""
    if settings.live.promotion != "auto":
        return
    there = settings.promotion.judge == "learner"
    if relay and not there:
        raise ConfigError(
            "promotion.judge: expected 'learner' together with --relay, got 'here': segments of "
            "several servers are judged on the learner's machine"
        )
    if there and learner != "off":
        raise ConfigError(
            "promotion.judge: expected 'here' with a learner beside the server, got 'learner': "
            "the learner is on another machine (--relay URL)"
        )
    if before is None or before.config.promotion.judge == settings.promotion.judge:
        return
    from understudy.promotion.log import PromotionLog

    if there and PromotionLog(before.promotion).new():
        raise ConfigError(
            f"--relay: {before.root} was judged by its own log. Serve from a new run folder, or "
            "start the learner's side of the relay with a copy of this one"
        )


def _line(progress: ServeProgress) -> ProgressLine:
    live = progress.live
    p99 = "-" if progress.p99_ms is None else f"{progress.p99_ms:.1f} ms"
    parts = [
        Part(f"{progress.decisions_s:>7.1f} decisions/s", 10),
        Part(f"p99 {p99:>8}", 20),
        Part(f"clients {live.clients}", 50),
        Part(f"territories {live.territories}", 40),
        Part(f"open {live.ledger.open}", 55),
        Part(f"reward {live.recent_reward:+.3f}"),
        Part(progress.plays, 15),
        Part(f"version {live.version}", 30),
        Part(f"learner {progress.learner}", 45),
    ]
    return ProgressLine(parts=parts, elapsed_s=progress.elapsed_s, version=live.version)


def _summary(summary: ServeSummary, width: Width) -> list[str]:
    live, status = summary.live, summary.status
    counts, waiting = live.ledger, status.buffer_file_count
    p50, p99 = summary.answer_ms
    took = "-" if p50 is None or p99 is None else f"p50 {p50:.2f} ms, p99 {p99:.2f} ms"
    rows = {
        "Decisions": f"{live.decisions:,} ({live.sent:,} sent, {live.waited:,} waited, "
        f"{live.degraded:,} degraded)",
        "An answer": took,
        "Ledger": f"{counts.opened:,} opened = {counts.settled:,} settled + "
        f"{counts.expired:,} expired + {counts.superseded:,} superseded + "
        f"{counts.orphaned:,} orphaned + {counts.open:,} open",
        "Versions": f"{status.versions}; version {live.version} decided last",
        "Waiting": f"{learned_from(waiting, served=True)} for the next learner",
        "Run folder": status.run,
    }
    return [
        "",
        f"Stopped after {duration(summary.seconds)}: everything up to here is kept.",
        "",
        *(line for label, text in rows.items() for line in summary_row(label, text, width)),
        "",
        *commands("More", [f"understudy status --run {status.run}"], width),
    ]
