"""A Ray cluster on two hosts, as far as the network goes: the second one is a network namespace,
whose cable can be pulled. Needs Linux, root and `ip`."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
from required import skip_without

_SPACE, _CABLE, _PLUG = "understudy-b", "understudy-b0", "understudy-b1"
_HERE, _THERE, _PORT = "10.211.7.1", "10.211.7.2", 6411
_RAY = str(Path(sys.executable).with_name("ray"))


class TwoHosts:
    """A head with one CPU here, and a node with two on the other host."""

    address = f"{_HERE}:{_PORT}"

    def __init__(self, stack: contextlib.ExitStack) -> None:
        """`stack` ends what was begun."""
        if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("ip") is None:
            skip_without("hosts", "network namespaces need Linux, root and `ip`")
        stack.callback(run, "ip", "netns", "del", _SPACE)  # and its cable
        for words in (
            ("netns", "add", _SPACE),
            ("link", "add", _CABLE, "type", "veth", "peer", "name", _PLUG, "netns", _SPACE),
            ("addr", "add", f"{_HERE}/24", "dev", _CABLE),
            ("link", "set", _CABLE, "up"),
            ("-n", _SPACE, "addr", "add", f"{_THERE}/24", "dev", _PLUG),
            ("-n", _SPACE, "link", "set", _PLUG, "up"),
            ("-n", _SPACE, "link", "set", "lo", "up"),
        ):
            run("ip", *words)
        stack.callback(end_cluster)
        head = ("--head", f"--node-ip-address={_HERE}", f"--port={_PORT}", "--num-cpus=1")
        run(_RAY, "start", *head, "--include-dashboard=false")
        self.add_node()

    def add_node(self) -> None:
        there = (f"--address={self.address}", f"--node-ip-address={_THERE}", "--num-cpus=2")
        run("ip", "netns", "exec", _SPACE, _RAY, "start", *there)

    def pull_cable(self) -> None:
        run("ip", "link", "set", _CABLE, "down")

    def plug_in(self) -> None:
        run("ip", "link", "set", _CABLE, "up")


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120.0)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"


def end_cluster() -> None:
    """SIGKILL to all of it on both hosts, and to no other Ray; workers end with their raylet."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # it has ended
            if any(_HERE in word for word in process.cmdline()):
                process.kill()


@contextlib.contextmanager
def two_hosts() -> Iterator[TwoHosts]:
    with contextlib.ExitStack() as stack:
        yield TwoHosts(stack)
