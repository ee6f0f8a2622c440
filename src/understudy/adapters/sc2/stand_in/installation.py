"""The stand-in as an installation of StarCraft II that burnysc2 starts: a folder for `SC2PATH`."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec

from understudy.adapters.sc2.stand_in.connection import BASE_BUILD, Scenario
from understudy.adapters.sc2.stand_in.ground import NAME
from understudy.adapters.sc2.stand_in.server import serving
from understudy.core.errors import ConfigError, FileFormatError

SCENARIO = "stand_in.json"
_EXECUTABLES = {"linux": "SC2_x64", "darwin": "SC2.app/Contents/MacOS/SC2"}
_SCRIPT = """#!{python}
from understudy.adapters.sc2.stand_in.installation import main

main()
"""


def install(folder: Path, scenario: Scenario = Scenario(), *, maps: tuple[str, ...] = ()) -> Path:  # noqa: B008
    """Makes a folder that burnysc2 takes for an installation of StarCraft II.

    Args:
        folder: Made if it is missing. Set `SC2PATH` to it before `sc2` is imported.
        scenario: How its matches begin and end.
        maps: Names of further maps beside `StandIn`; all are the same map.

    Returns:
        The folder.

    Raises:
        ConfigError: On Windows, where burnysc2 starts programs (`.exe`) alone: play in process.
    """
    name = _EXECUTABLES.get(sys.platform)
    if name is None or os.name != "posix":
        raise ConfigError(
            f"stand-in: burnysc2 cannot start it on {sys.platform}; play it in process "
            "(understudy.sc2.stand_in.serving)"
        )
    program = folder / "Versions" / f"Base{BASE_BUILD}" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(_SCRIPT.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    (folder / "Maps").mkdir(exist_ok=True)
    for one in (NAME, *maps):
        (folder / "Maps" / f"{one}.SC2Map").write_bytes(b"stand-in")
    (folder / SCENARIO).write_bytes(msgspec.json.encode(scenario._asdict()))
    return folder


def main() -> None:
    """The program of the installation: serves one game, as StarCraft II is started by burnysc2."""
    parser = argparse.ArgumentParser(prefix_chars="-", allow_abbrev=False)
    parser.add_argument("-listen", default="127.0.0.1")
    parser.add_argument("-port", type=int, required=True)
    parser.add_argument("-dataDir", type=Path)
    found, _ = parser.parse_known_args()
    asyncio.run(_serve(found.listen, found.port, _scenario(found.dataDir)))


async def _serve(host: str, port: int, scenario: Scenario) -> None:
    quit_asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, quit_asked.set)
    async with serving(scenario, host=host, port=port, quit_asked=quit_asked):
        await quit_asked.wait()


def _scenario(folder: Path | None) -> Scenario:
    path = None if folder is None else folder / SCENARIO
    if path is None or not path.is_file():
        return Scenario()
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=dict[str, object])
        return msgspec.convert(list((Scenario()._asdict() | kept).values()), Scenario)
    except msgspec.MsgspecError as error:
        raise FileFormatError(
            f"{path}: {error}; delete it, or install the stand-in again"
        ) from error
