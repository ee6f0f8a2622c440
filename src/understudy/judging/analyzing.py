"""An analysis from the first match to the last picture: each part is kept as soon as it is done.

An analysis that is stopped early leaves the files of its finished parts, and an `analysis.json`
that holds exactly those.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from understudy.analysis import ablation, canvas, encoding, figures, study, tables
from understudy.analysis.findings import Findings, ablation_of, attention_of
from understudy.analysis.recording import MatchRecording, Show, record
from understudy.core import files
from understudy.core.errors import ConfigError
from understudy.games import catalog
from understudy.games.base import Game
from understudy.games.brawl.tables import FRAMES_PER_S
from understudy.judging.players import NamedPlayer, engine_named
from understudy.match.players import Player, PolicyPlayer
from understudy.match.series import Engine, plain

FEWEST = 5
"""Matches against each opponent, so that every fold of the probe has each of them."""
ATTENDED = 4
"""Matches against each opponent whose attention is looked into."""
_STATES = ("gap_x", "y", "vx", "grounded", "startup", "active", "recovering", "helpless", "damage")

ProgressOf = Callable[[str], AbstractContextManager[Show]]
"""Words about a part to what shows how far it has come."""


@dataclass(frozen=True, kw_only=True)
class AnalysisRequest:
    """Who is looked into, against whom, how closely, and where to."""

    game: Game
    agent: NamedPlayer
    opponents: Mapping[str, Player]
    matches: int
    ablation: int
    """Matches in all; 0 for none."""
    seed: int
    out: Path
    engine: Engine
    encoder: encoding.Encoder

    def __post_init__(self) -> None:
        if self.matches < FEWEST:
            raise ConfigError(f"--matches: expected {FEWEST} or more, got {self.matches}")
        if self.ablation < 0:
            raise ConfigError(f"--ablation: expected 0 (none) or more, got {self.ablation}")
        first = min(study.frames_at(FRAMES_PER_S))
        if self.game.max_frames < first:
            raise ConfigError(
                f"analyze: matches are looked at from frame {first} on; those of {self.game.name} "
                f"end after {self.game.max_frames}"
            )
        if len(self.opponents) < 2:
            raise ConfigError("--opponents: expected two or more, to tell them apart")


def engines_named(name: str) -> tuple[Engine, encoding.Encoder]:
    """What carries matches on, and what encodes them: both NumPy, or both JAX."""
    engine = engine_named(name)
    if engine is plain:
        return engine, encoding.plain
    from understudy.arena.compiling import compiled_encoder

    return engine, compiled_encoder


def analyze(asked: AnalysisRequest, progress_of: ProgressOf) -> Findings:
    """Everything, in the order in which it can be used."""
    player = asked.agent.player
    who = f"--agent {asked.agent.name}"
    if not isinstance(player, PolicyPlayer):
        raise ConfigError(f"{who}: a script has no latent to look into; name a run")
    network = encoding.strategist_of(player.policy, who=who)
    canvas.check_installed()
    files.make_folders(asked.out)
    found = Findings(
        game=asked.game.name,
        agent=asked.agent.name,
        version=asked.agent.version,
        matches=asked.matches,
        seed=asked.seed,
        sampled=player.sampled,
        frames_per_s=FRAMES_PER_S,
        opponents=list(asked.opponents),
        window=network.window,
    )
    with progress_of(f"record {asked.matches} matches v {len(asked.opponents)}") as show:
        seen = record(
            asked.game, player, asked.opponents,
            matches=asked.matches, frames=max(study.frames_at(FRAMES_PER_S)), seed=asked.seed,
            engine=asked.engine, show=show,
        )  # fmt: skip
    _latents(asked, player, seen, found, progress_of, opponent=network.opponent)
    _attention(asked, player, seen, found, progress_of, opponent=network.opponent)
    if asked.ablation:
        _ablation(asked, player, found, progress_of)
    return found


def _latents(
    asked: AnalysisRequest,
    player: PolicyPlayer,
    seen: MatchRecording,
    found: Findings,
    progress_of: ProgressOf,
    *,
    opponent: int,
) -> None:
    out, names = asked.out, seen.opponents
    with progress_of("encode them, trained and untrained") as show:
        encoded = study.encode(
            player.policy, seen, frames_per_s=FRAMES_PER_S, encoder=asked.encoder, show=show
        )
    predicted = study.answers(player.policy, encoded, names, tuple(catalog.bots(asked.game.name)))
    with progress_of("probes") as show:
        found.probe = study.probe_all(
            seen, encoded, predicted, opponent=opponent, frames_per_s=FRAMES_PER_S, show=show
        )
    found.ceiling = study.ceilings(seen, frames_per_s=FRAMES_PER_S)
    tables.write_csv(out / "probe.csv", *tables.probe_rows(found.probe, found.ceiling))
    tables.write_csv(out / "confusion.csv", *tables.confusion_rows(found.probe, names))
    canvas.keep(figures.probe(found.probe, found.ceiling, names), out / "probe.png")
    _keep(found, out)
    with progress_of("clusters, PCA and t-SNE") as show:
        found.silhouette = study.silhouettes(seen, encoded, frames_per_s=FRAMES_PER_S)
        show(0.3)
        geometry = study.geometry_of(seen, encoded, frames_per_s=FRAMES_PER_S)
    if geometry is not None:
        found.distances = dict(zip(tables.ENCODERS, geometry.distances.tolist(), strict=True))
        tables.write_csv(out / "latents_pca.csv", *tables.place_rows(geometry, "principal", names))
        tables.write_csv(
            out / "latents_tsne.csv", *tables.place_rows(geometry, "neighbours", names)
        )
        tables.write_csv(out / "distances.csv", *tables.distance_rows(geometry, names))
        scores = found.silhouette[geometry.seconds]
        notes = tuple(
            f"{encoder}: silhouette {score:.2f}"
            for encoder, score in zip(tables.ENCODERS, scores, strict=True)
        )
        for places, how, axes in (
            ("principal", "pca", ("first axis", "second")),
            ("neighbours", "tsne", None),
        ):
            drawn = figures.scatter(
                geometry, places, names, notes=(notes[0], notes[1]), axes=axes,
                title=f"Strategy latents {geometry.seconds} s into the match, "
                f"one point a match ({how.upper().replace('TSNE', 't-SNE')})",
            )  # fmt: skip
            canvas.keep(drawn, out / f"latents_{how}.png")
        canvas.keep(figures.distances(geometry, names), out / "distances.png")
    _keep(found, out)


def _attention(
    asked: AnalysisRequest,
    player: PolicyPlayer,
    seen: MatchRecording,
    found: Findings,
    progress_of: ProgressOf,
    *,
    opponent: int,
) -> None:
    out, actions = asked.out, asked.game.actions
    with progress_of("attention, trained and untrained") as show:
        attended = study.attend(player.policy, seen, each=ATTENDED, show=show)
    found.attention = attention_of(seen, attended, actions)
    tables.write_csv(out / "attention.csv", *tables.attention_rows(seen, attended, actions))
    states = shown_states(asked.game.features, opponent)
    for label, name in enumerate(seen.opponents):
        drawn = figures.attention(
            seen, attended, label, actions=actions, states=states, frames_per_s=FRAMES_PER_S
        )
        canvas.keep(drawn, out / f"attention_{file_name(name)}.png")
    _keep(found, out)


def _ablation(
    asked: AnalysisRequest, player: PolicyPlayer, found: Findings, progress_of: ProgressOf
) -> None:
    out = asked.out
    with progress_of(f"ablation: {asked.ablation} matches, three ways") as show:
        result = ablation.play_all(
            asked.game, player, asked.opponents,
            matches=asked.ablation, seed=asked.seed, engine=asked.engine, encoder=asked.encoder,
            show=show,
        )  # fmt: skip
    found.ablation = ablation_of(result)
    tables.write_csv(out / "ablation.csv", *tables.ablation_rows(result))
    canvas.keep(figures.ablation(result), out / "ablation.png")
    _keep(found, out)


def shown_states(features: tuple[str, ...], opponent: int) -> dict[str, int]:
    """Features of the opponent that a picture shows, by name, with their places."""
    theirs = range(len(features) - opponent, len(features))
    named = {features[index].removeprefix("opponent."): index for index in theirs}
    chosen = {name: named[name] for name in _STATES if name in named}
    return chosen or dict(list(named.items())[: len(_STATES)])


def file_name(opponent: str) -> str:
    """An opponent's name as part of a file's: a run's has slashes in it."""
    return re.sub(r"[^\w.-]+", "-", opponent).strip("-")


def _keep(found: Findings, out: Path) -> None:
    data = msgspec.json.format(msgspec.json.encode(found), indent=2)
    files.write_atomic(out / "analysis.json", data + b"\n")
