"""Writes agents of runs to files: `understudy export --as module` and `--as weights`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from understudy.agents.loading import NamedPolicy
from understudy.agents.module_file import AgentClass, AgentSource, module_text
from understudy.core import files
from understudy.core.errors import ConfigError
from understudy.policy import weights


class ExportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """What was written; the answer of `export --json`."""

    what: str
    """module, ai2 or weights."""
    run: str
    version: int | None
    file: str
    bytes: int


def check_target(out: Path, ending: str, *, force: bool) -> None:
    """`ConfigError` unless a file of this ending can be written to `out`."""
    if out.suffix != ending:
        raise ConfigError(f"--out {out}: expected a name that ends in {ending}")
    if not out.parent.is_dir():
        raise ConfigError(f"--out {out}: there is no folder {out.parent}")
    if out.is_dir():
        raise ConfigError(
            f"--out {out}: is a folder; expected a file in it, {out / ('agent' + ending)}"
        )
    if out.exists() and not force:
        raise ConfigError(f"--out {out}: exists already; --force replaces it")


def write_module(
    named: NamedPolicy,
    out: Path,
    agent: AgentClass,
    *,
    float16: bool = False,
    most_bytes: int | None = None,
) -> ExportedFile:
    """One Python file that plays the policy. `ConfigError`: it would be larger than it may be."""
    identity = named.folder.identity
    source = AgentSource(
        run=named.folder.root.resolve().name,
        game=identity.game,
        # A path of this machine is of no use elsewhere, and not for others to see.
        game_options={
            name: value
            for name, value in identity.game_options.items()
            if not Path(value).is_absolute()
        },
    )
    data = module_text(named.policy, source, agent, float16=float16).encode()
    if most_bytes is not None and len(data) > most_bytes:
        hint = "train a smaller network" if float16 else "--float16 halves it"
        raise ConfigError(
            f"--as {agent.kind}: the file would have {len(data) / 1e6:.1f} MB, and may have "
            f"{most_bytes / 1e6:.1f} MB; {hint}"
        )
    return _written(named, out, data, agent.kind)


def write_weights(named: NamedPolicy, out: Path) -> ExportedFile:
    """One `.npz` file that NumPy can read (docs/file-formats.md)."""
    return _written(named, out, weights.encode(named.policy.weights), "weights")


def _written(named: NamedPolicy, out: Path, data: bytes, what: str) -> ExportedFile:
    files.write_atomic(out, data)
    return ExportedFile(
        what=what,
        run=named.folder.root.as_posix(),
        version=named.version,
        file=str(out),
        bytes=len(data),
    )
