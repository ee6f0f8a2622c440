"""A Ray cluster of two nodes on this machine: each has its own raylet and object store."""

from __future__ import annotations

import contextlib
import threading

import psutil

from understudy.workers.ray_actors import RayWorker

GOES_ON_S = 10.0
"""How long training may stand still after a kill; two seconds are usual. Ray takes 15 s to notice
that a node is lost."""
_ACTOR = f"ray::{RayWorker.__name__}"
"""How Ray calls the process of an actor; what it does just now follows."""


class TwoNodes:
    """A head with one CPU, and a node with two that can be killed and added again."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        memory = {"object_store_memory": 100 << 20}
        self._memory = memory
        self.cluster = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 1, "include_dashboard": False, **memory},
        )
        self.node = self.cluster.add_node(num_cpus=2, **memory)

    def kill_node(self) -> None:
        """SIGKILL to its raylet: its actors end with it."""
        self._raylet(self.node).kill()

    def add_node(self) -> None:
        # Ray's hook for the end of the process sets signals, which only the main thread can; the
        # fixture stops every node.
        self.cluster._shutdown_at_exit = threading.current_thread() is threading.main_thread()
        self.cluster.worker_nodes.discard(self.node)
        self.node.kill_all_processes(check_alive=False, allow_graceful=False)  # what is left of it
        self.node = self.cluster.add_node(num_cpus=2, **self._memory)

    def mend(self) -> None:
        """Add the second node again, if a test that failed has left none."""
        if self._raylet(self.node).status() == psutil.STATUS_ZOMBIE:
            self.add_node()

    def actors(self) -> list[psutil.Process]:
        """The processes of our actors, on both nodes."""
        found = []
        for node in (self.cluster.head_node, self.node):
            for process in self._raylet(node).children(recursive=True):
                with contextlib.suppress(psutil.Error):  # it has ended
                    if " ".join(process.cmdline()).startswith(_ACTOR):
                        found.append(process)
        return found

    @staticmethod
    def _raylet(node: object) -> psutil.Process:
        (raylet,) = node.all_processes["raylet"]  # type: ignore[attr-defined]
        return psutil.Process(raylet.process.pid)
