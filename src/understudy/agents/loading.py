"""Agents by the names that people give them: a run, a version, a snapshot or an exported file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from understudy.agents.agent import LoadedAgent, PolicyAgent
from understudy.agents.exported import is_file, load_exported
from understudy.core.clock import SystemClock
from understudy.core.errors import ConfigError, RunFolderError
from understudy.core.opponents import steps_of
from understudy.policy.policy import Policy
from understudy.registry.run_folder import RunFolder


@dataclass(frozen=True)
class NamedPolicy:
    """A policy of a run."""

    folder: RunFolder
    policy: Policy
    version: int | None
    """None: a snapshot."""
    note: str = ""
    """What a person should know of the choice."""


def load_agent(
    path: str | Path, *, greedy: bool | None = None, seed: int | None = None
) -> LoadedAgent:
    """An agent that plays by itself, with NumPy.

        agent = understudy.load_agent("runs/brawl-1")      # its champion
        action = agent.act(features)
        agent.reset()                                      # before each further match

    Args:
        path: A run folder, a version of it (`runs/brawl-1@12`), a snapshot (`@step-65536`), or a
            file that `understudy export --as module` wrote. Loading a file runs it: load only
            files that you trust.
        greedy: Take the likeliest action; False: draw. None: draw, or as an exported file says.
        seed: Of the draws. None: others each time.

    Returns:
        An agent with `act(features, legal=None, uniforms=None)` and `reset()`; see
        `agents.agent.PolicyAgent`.

    Raises:
        ConfigError: There is no such run or file.
        RunFolderError: The run has no version, or not this one.
        FileFormatError: The file is damaged or was not exported.
    """
    name = str(path)
    if is_file(name):
        agent: LoadedAgent = load_exported(Path(name)).agent(greedy=greedy, seed=seed)
        return agent
    return PolicyAgent(named_policy("path", name).policy, greedy=bool(greedy), seed=seed)


def named_policy(flag: str, name: str) -> NamedPolicy:
    """The policy that RUN, RUN@VERSION or RUN@step-N names; `flag` is for errors."""
    path, which = split_name(flag, name)
    if not path.is_dir():
        raise ConfigError(
            f"{flag} {name}: there is no run folder {str(path)!r}; expected RUN, RUN@VERSION or "
            "RUN@step-N"
        )
    folder = RunFolder.load(path, SystemClock())
    if isinstance(which, str):
        from understudy.league import snapshots

        return NamedPolicy(folder, snapshots.named(folder, which, flag=flag), None)
    note = ""
    if which is None:
        which, note = playing_version(folder, flag, name)
    return NamedPolicy(folder, folder.versions.policy(which), which, note)


def split_name(flag: str, name: str) -> tuple[Path, int | str | None]:
    """The run folder of a name, and the version or the snapshot where it names one."""
    path = Path(name)
    stem, at, tail = name.rpartition("@")
    if not at or path.is_dir():
        return path, None
    if tail.isdecimal():
        return Path(stem), int(tail)
    if steps_of(tail) is not None:
        return Path(stem), tail
    raise ConfigError(f"{flag} {name}: expected RUN@VERSION with a whole number, or RUN@step-N")


def playing_version(folder: RunFolder, flag: str, name: str) -> tuple[int, str]:
    """The champion, or the newest version where there is none, and what to say of that."""
    record = folder.pointers.read("champion")
    version = (record.version if record else 0) or folder.versions.head()
    if version is None:
        raise RunFolderError(f"{flag} {name}: this run has no version yet")
    if record is not None and not record.version:
        return version, (
            f"{name} has no champion by evidence yet; this is the newest version, {version}"
        )
    return version, ""
