"""`understudy models`: the versions of a run, and which of them plays."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import LatestRun
from understudy.cli.output import emit_labelled, emit_table, emit_text
from understudy.core.errors import FileFormatError
from understudy.registry.pointers import NAMES
from understudy.registry.rewards import reward_text, rewards_in, version_reward, won_text
from understudy.registry.run_folder import RunFolder
from understudy.registry.scores import Score, score_of
from understudy.registry.versions import Manifest
from understudy.run.controls import release_champion, roll_back, rollback_target
from understudy.telemetry.layout import Column
from understudy.telemetry.report_parts import reward_lines
from understudy.telemetry.text import duration, say, say_json, size, stamp

app = typer.Typer(no_args_is_help=True)

_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_Version = Annotated[int, typer.Argument(help="The number of a version.")]


@app.callback()
def _models() -> None:
    """The versions of a run, and which of them plays.

    Example: understudy models list --run runs/swarm-1
    """


@app.command("list")
def list_(run: LatestRun = None, json: _Json = False) -> None:
    """List the versions that are kept, newest last: how they played, and why each is kept.

    Example: understudy models list --run runs/swarm-1
    """
    from understudy.registry.retention import kept, scores_of

    folder = _folder(run)
    roles, why, scores = _roles(folder), kept(folder), scores_of(folder)
    unit = _unit(folder)
    rows, damaged = [], []
    for number in folder.versions.numbers():
        try:
            rows.append(folder.versions.manifest(number))
        except FileFormatError as error:
            damaged.append(str(error))
    for message in damaged:
        say(f"understudy: passed over: {message}", file=sys.stderr)
    if json:
        table = [
            {
                "version": row.number,
                "parent": row.parent,
                "created_at": row.created_at,
                "matches": row.counters.get("matches", 0),
                "segments": _learned(row) if unit == "segments" else 0,
                "loss": row.metrics.get("loss"),
                "roles": roles.get(row.number, []),
                "score": _score(score_of(scores, row.number)),
                "reward": _reward(score_of(scores, row.number)),
                "kept": why.get(row.number, ()),
            }
            for row in rows
        ]
        say_json(table)
        return
    if not rows and not damaged:
        say("No version yet: the learner commits the first one after the first batch of matches.")
        return
    emit_table(
        _columns(unit),
        [
            [
                f"{row.number}",
                f"{row.parent or '-'}",
                f"{_learned(row):,}",
                f"{row.metrics['loss']:.4f}" if "loss" in row.metrics else "-",
                stamp(row.created_at),
                won_text(score_of(scores, row.number)),
                reward_text(score_of(scores, row.number)),
                ", ".join(roles.get(row.number, [])),
                _kept_text(why.get(row.number)),
            ]
            for row in rows
        ],
    )


@app.command()
def show(version: _Version, run: LatestRun = None, json: _Json = False) -> None:
    """Show one version: where it comes from, what it learned from, how the last batch went.

    Example: understudy models show 12 --run runs/swarm-1
    """
    from understudy.registry.retention import scores_of

    folder = _folder(run)
    manifest = folder.versions.existing(version)
    if json:
        say_json(manifest)
        return
    age = duration(max(0.0, folder.clock.time() - manifest.created_at))
    made = f"made {stamp(manifest.created_at)} ({age} ago)"
    rows = [
        ("Version", f"{version} of {folder.root}, {made}"),
        ("Parent", f"{manifest.parent or 'none'}"),
        ("Role", ", ".join(_roles(folder).get(version, ["none"]))),
        ("Network", f"{manifest.spec.network}"),
        ("Learned", _learned_text(manifest, _unit(folder))),
    ]
    if played := _played_text(score_of(scores_of(folder), version)):
        rows.append(("Played", played))
    known = [] if manifest.mode == "train" else reward_lines(rewards_in(manifest))
    # Of the versions before it, as it was known when it was made.
    rows += [("Known then" if label else "", words) for label, words in known]
    files = (f"{name} ({size(one.bytes)})" for name, one in manifest.files.items())
    rows += [
        ("Last batch", ", ".join(f"{k} {v:.4g}" for k, v in manifest.metrics.items())),
        ("Files", ", ".join(files)),
    ]
    emit_labelled(rows, label_width=11)


@app.command()
def rollback(
    version: Annotated[
        int | None,
        typer.Argument(help="Where to go back to (default: the last one that played well)."),
    ] = None,
    run: LatestRun = None,
    json: _Json = False,
) -> None:
    """Go back to an earlier version and pin it: no rule moves it until `models release`.

    Bots pick it up at once, and the learner goes on from it. Nothing is learned from twice.
    Where evidence moves the champion (`understudy promotion`), it plays every match of mode auto
    until `models release`, without tests.
    Without a number: the last version before the present one that is known to have played well;
    where that is known of none, the parent of the present one.

    Example: understudy models rollback 12 --run runs/swarm-1
    """
    folder = _folder(run)
    why = ""
    if version is None:
        version, why = rollback_target(folder)
    _moved(roll_back(folder, version, why=why), version, pinned=True, json=json)


@app.command()
def release(run: LatestRun = None, json: _Json = False) -> None:
    """Unpin the champion: the next version that is promoted plays again.

    Where evidence moves the champion (`understudy promotion`), the version that it names plays.

    Example: understudy models release --run runs/swarm-1
    """
    version, text = release_champion(_folder(run))
    _moved(text, version, pinned=False, json=json)


@app.command()
def export(
    version: _Version,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write (.npz).")],
    run: LatestRun = None,
    json: _Json = False,
) -> None:
    """Write the weights of a version to one file, as `understudy export --as weights` does.

    Example: understudy models export 12 --out champion.npz --run runs/swarm-1
    """
    from understudy.agents.files import check_target, write_weights
    from understudy.agents.loading import NamedPolicy

    check_target(out, ".npz", force=True)
    folder = _folder(run)
    named = NamedPolicy(folder, folder.versions.policy(version), version)
    written = write_weights(named, out)
    if json:
        say_json({"version": version, "file": str(out), "bytes": written.bytes})
    else:
        say(f"Version {version} is in {out} ({written.bytes} bytes).")


def _folder(run: Path | None) -> RunFolder:
    from understudy.core.clock import SystemClock
    from understudy.registry.run_folder import latest

    return RunFolder.load(run or latest(), SystemClock())


def _columns(unit: str) -> list[Column]:
    return [
        Column("version"),
        Column("parent", drop=6),
        Column(unit, drop=3),
        Column("loss", drop=7),
        Column("made", text=True, drop=4),
        Column("score", text=True, drop=1),
        Column("reward", text=True, drop=2),
        Column("role", text=True),
        Column("kept as", text=True, drop=5),
    ]


def _unit(folder: RunFolder) -> str:
    """What the versions of a run learn from; a server has segments, not matches."""
    from understudy.experience.ledger.recovery import is_served

    return "segments" if is_served(folder.root) else "matches"


def _learned(manifest: Manifest) -> int:
    """How many of those, over all versions so far."""
    return manifest.counters.get("matches", manifest.counters.get("ingested", 0))


def _score(score: Score | None) -> dict[str, object] | None:
    """For JSON; None where too little is known."""
    if score is None or not score.full:
        return None
    result: dict[str, object] = {"first": score.first, "last": score.last}
    if (rate := score.win_rate) is not None:
        return result | {
            "matches": score.matches, "win_rate": rate.mean, "interval": [rate.low, rate.high]
        }  # fmt: skip
    mean = score.mean_reward
    assert mean is not None, "a full score has one of the two"
    return result | {
        "episodes": score.episodes, "reward": mean.mean, "interval": [mean.low, mean.high]
    }  # fmt: skip


def _played_text(score: Score | None) -> str:
    """How a version played, counted with its neighbours."""
    reward = reward_text(score)
    parts = [won_text(score), f"reward {reward}" if reward else ""]
    text = ", ".join(part for part in parts if part)
    if not text or score is None or score.first == score.last:
        return text
    return f"{text}; versions {score.first} to {score.last} together"


def _reward(score: Score | None) -> dict[str, object] | None:
    """For JSON; None where too little is known."""
    found = None if score is None else version_reward(score, matches=score.rewarded > 0)
    if found is None:
        return None
    mean = found.reward
    return {
        "first": found.first, "last": found.last, "count": found.count,
        "mean": mean.mean, "interval": [mean.low, mean.high],
    }  # fmt: skip


def _kept_text(why: tuple[str, ...] | None) -> str:
    """Why a version is kept, without what its role says already."""
    if why is None:
        return "(not kept: the learner removes it soon)"
    return ", ".join(reason for reason in why if reason not in NAMES)


def _learned_text(manifest: Manifest, unit: str) -> str:
    """What the counters of a version say; `train` counts iterations, a learner updates."""
    counters = manifest.counters
    totals = [
        f"{counters[key]:,} {key}" for key in ("steps", "iterations", "updates") if key in counters
    ]
    if learned := _learned(manifest):
        totals.insert(0, f"{learned:,} {unit}")
    if not manifest.ingested:
        return ", ".join(totals) or "nothing yet"
    return f"{len(manifest.ingested)} {unit} since its parent; in all {', '.join(totals)}"


def _roles(folder: RunFolder) -> dict[int, list[str]]:
    """By version; version 0 are the rules, which no role is shown of."""
    roles: dict[int, list[str]] = {}
    for name in NAMES:
        record = folder.pointers.read(name)
        if record is not None and record.version:
            roles.setdefault(record.version, []).append(
                f"{name}{' (pinned)' if record.pinned else ''}"
            )
    return roles


def _moved(text: str, version: int, *, pinned: bool, json: bool) -> None:
    if json:
        say_json({"champion": version, "pinned": pinned})
    else:
        emit_text(text)
