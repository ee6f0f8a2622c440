"""What a report tells of: the view of a run, and what lies beside its journal."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import msgspec

from understudy import __version__
from understudy.core.config import Config
from understudy.core.config.descriptions import settings
from understudy.core.config.section import Section
from understudy.core.errors import UnderstudyError
from understudy.doctor.evidence import RunKind
from understudy.doctor.findings import Finding
from understudy.league import lineage as lineages
from understudy.league.lineage import Lineage
from understudy.league.snapshots import league_of
from understudy.league.state import LeagueState
from understudy.promotion.history import PromotionHistory, read_history
from understudy.registry.run_folder import Identity, RunFolder
from understudy.screens.html.version_table import VersionRow, notable, version_rows
from understudy.telemetry.history import History, HistoryFiles
from understudy.telemetry.run_view import RunView
from understudy.telemetry.status import Status
from understudy.telemetry.trends import Trends

T = TypeVar("T")

_VERSIONS = 18
"""Of which a report has a row: those with a role, the best, and the newest."""
_LIBRARIES = ("numpy", "msgspec", "jax", "matplotlib")


class ChangedSetting(NamedTuple):
    """A setting that is not at its default."""

    key: str
    default: str
    value: str
    words: str


@dataclass(frozen=True)
class ReportFacts:
    """Everything that a report shows, as plain data."""

    name: str
    """Of the run folder."""
    identity: Identity
    kind: RunKind
    view: RunView
    findings: tuple[Finding, ...]
    settings: tuple[ChangedSetting, ...]
    versions: tuple[VersionRow, ...]
    """Ascending."""
    versions_kept: int
    machine: tuple[tuple[str, str], ...]
    unread: tuple[str, ...] = ()
    """What is damaged, and therefore missing here."""
    promotion: PromotionHistory | None = None
    league: LeagueState | None = None
    history: History | None = None
    """The tables of a training run."""
    lineage: Lineage | None = None
    """Of a population."""

    @property
    def status(self) -> Status:
        return self.view.status

    @property
    def trends(self) -> Trends:
        return self.view.trends

    @property
    def unit(self) -> str:
        """What the run learns from."""
        return "segments" if self.kind == "server" else "matches"


def read_facts(
    folder: RunFolder, view: RunView, findings: Sequence[Finding], *, kind: RunKind
) -> ReportFacts:
    """Read everything else that a report shows. What is damaged is left out, and named."""
    unread: list[str] = []

    def tried(read: Callable[[], T | None]) -> T | None:
        try:
            return read()
        except (UnderstudyError, OSError) as error:
            unread.append(str(error))
            return None

    rows = version_rows(folder, unread)
    return ReportFacts(
        name=folder.root.resolve().name,
        identity=folder.identity,
        kind=kind,
        view=view,
        findings=tuple(findings),
        settings=tuple(changed_settings(folder.config)),
        versions=notable(rows, _VERSIONS),
        versions_kept=len(rows),
        machine=machine(),
        promotion=tried(lambda: read_history(folder)) if folder.by_evidence else None,
        league=tried(lambda: _league(folder)),
        history=HistoryFiles(folder.root).read() if kind == "training" else None,
        lineage=tried(lambda: _lineage(folder)),
        unread=tuple(unread),
    )


def changed_settings(config: Config) -> Iterator[ChangedSetting]:
    """Every setting that differs from its default, with what it means."""
    yield from _changed(Config(), config, prefix="")


def _changed(default: Section, now: Section, *, prefix: str) -> Iterator[ChangedSetting]:
    for one in settings(type(now)):
        was, value = getattr(default, one.name), getattr(now, one.name)
        if was == value:
            continue
        if isinstance(was, Section) and isinstance(value, Section) and type(was) is type(value):
            yield from _changed(was, value, prefix=f"{prefix}{one.name}.")
        else:
            shown = (_setting_text(was), _setting_text(value))
            yield ChangedSetting(f"{prefix}{one.name}", *shown, one.words)


def _setting_text(value: object) -> str:
    if value is None or value in ((), [], {}, ""):
        return "none"
    plain = msgspec.to_builtins(value)
    if isinstance(plain, list | tuple) and plain and isinstance(plain[0], Mapping):
        names = [str(one.get("name", index)) for index, one in enumerate(plain, 1)]
        return f"{len(plain)}: {', '.join(names)}"
    return msgspec.json.encode(plain).decode() if not isinstance(plain, str) else plain


def machine() -> tuple[tuple[str, str], ...]:
    """Where the report was made; a run does not record where it ran."""
    libraries = []
    for name in _LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            libraries.append(f"{name} {importlib.metadata.version(name)}")
    return (
        ("System", f"{platform.system()} {platform.release()}, {platform.machine()}"),
        ("Cores", str(os.cpu_count() or "not known")),
        ("Python", platform.python_version()),
        ("Understudy", __version__),
        ("Libraries", ", ".join(libraries)),
    )


def _league(folder: RunFolder) -> LeagueState | None:
    head = folder.versions.head_manifest()
    return None if head is None else league_of(folder, head)


def _lineage(folder: RunFolder) -> Lineage | None:
    path = folder.root / lineages.FILE
    return lineages.decode(path.read_bytes(), what=str(path)) if path.exists() else None
