"""The user's code on its way to other machines: modules that are neither installed nor ours.

What the session has imported by now is what workers will import: its environment, its bots, and
whatever those import. Modules are copied into one folder, which Ray unpacks on every node as the
working directory of the workers. A package travels whole, with its data files; a single module
travels alone.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import understudy
from understudy.core.errors import ConfigError

_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Where Ray tells the entry point of a submitted job its configuration."""
_IGNORED = shutil.ignore_patterns("__pycache__", ".*", "runs")
_TOO_MUCH = 100 * 2**20


def job_working_dir() -> str | None:
    """The working directory of the submitted job that this process is; None: it is none, or has
    none."""
    said = os.environ.get(_JOB)
    runtime_env = (json.loads(said).get("runtime_env") or {}) if said else {}
    found = runtime_env.get("working_dir")
    return None if found is None else str(found)


def copy_user_code(folder: Path) -> dict[str, str]:
    """Copy the user's modules into a folder; the name that each file has in it, by its resolved
    path here."""
    found: dict[str, str] = {}
    for source in sorted(_top_levels(sys.modules.values())):
        target = folder / source.name
        if target.exists():
            raise ConfigError(
                f"--ray auto: {source} cannot travel to the cluster beside another {source.name}; "
                "rename one of them, or submit a job with --working-dir"
            )
        if source.is_dir():
            shutil.copytree(source, target, ignore=_IGNORED)
        else:
            shutil.copy2(source, target)
            found[str(source)] = source.name
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > _TOO_MUCH:
        raise ConfigError(
            f"--ray auto: the code of the environment is {size / 2**20:.0f} MB, too much to send "
            "to every node; put its data elsewhere, or install it on the nodes"
        )
    return found


def _top_levels(modules: Iterable[ModuleType]) -> set[Path]:
    """Files of modules, and folders of packages, that a user wrote."""
    installed = [
        Path(path).resolve()
        for key, path in sysconfig.get_paths().items()
        if key in ("stdlib", "platstdlib", "purelib", "platlib")
    ]
    ours = Path(understudy.__file__).resolve().parent
    found = set()
    for module in list(modules):
        name, file = getattr(module, "__name__", ""), getattr(module, "__file__", None)
        if not isinstance(file, str) or name in ("__main__", "__mp_main__"):
            continue
        path = Path(file).resolve()
        if any(path.is_relative_to(one) for one in (*installed, ours)) or not path.is_file():
            continue
        depth = name.count(".") + (path.name == "__init__.py")
        found.add(path.parents[depth - 1] if depth else path)
    return found
