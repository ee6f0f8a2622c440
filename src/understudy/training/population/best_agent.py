"""The run folder of a population: it offers the best agent's weights and the lineage.

`lineage.json` is the source; `lineage.csv` and `lineage.png` are made from it, whole, each time.
"""

from __future__ import annotations

from collections.abc import Sequence

from understudy.core import files
from understudy.core.errors import MissingDependency, RunFolderError
from understudy.league import lineage as lineages
from understudy.league.lineage import Lineage
from understudy.registry.checkpoints import MATCHES, STEPS, TRAIN, Checkpoints
from understudy.registry.run_folder import RunFolder
from understudy.screens.family_tree import draw
from understudy.telemetry.journal import Journal
from understudy.telemetry.text import complain
from understudy.training.population.agent import Agent

AGENT = "agent"
"""A counter of the run's own versions: whose weights they are."""


class BestAgent:
    """Use it under the learner's lock."""

    def __init__(self, folder: RunFolder, journal: Journal) -> None:
        self.folder = folder
        self.journal = journal
        self._checkpoints = Checkpoints(folder, journal, mode=TRAIN)

    @property
    def version(self) -> int:
        """The newest one."""
        return self._checkpoints.taken

    def known(self, agents: int) -> Lineage | None:
        """The lineage of an earlier session; an error where it does not fit this one."""
        root, path = self.folder.root, self.folder.root / lineages.FILE
        if not path.exists():
            if self.version:
                raise RunFolderError(
                    f"--population: {root} holds the run of a single agent; name another folder "
                    "with --run"
                )
            return None
        lineage = lineages.decode(path.read_bytes(), what=str(path))
        if lineage.agents != agents:
            raise RunFolderError(f"--population: {root} has {lineage.agents} agents, not {agents}")
        return lineage

    def write(self, lineage: Lineage) -> None:
        """Keep the lineage, before any version follows from it."""
        files.write_atomic(self.folder.root / lineages.FILE, lineages.encode(lineage))

    def tabulate(self, lineage: Lineage) -> None:
        """The same as a table."""
        files.write_atomic(self.folder.root / lineages.TABLE, lineages.table(lineage))

    def draw(
        self, lineage: Lineage, fitness: Sequence[float | None], *, best: int, steps: int
    ) -> None:
        """The same as a picture, with the present fitness of every agent."""
        title = f"{self.folder.root.resolve().name} ({self.folder.identity.game})"
        try:
            picture = draw(lineage, fitness, best=best, steps=steps, title=title)
            files.write_atomic(self.folder.root / lineages.PICTURE, picture)
        except (MissingDependency, OSError) as error:
            complain(f"{lineages.PICTURE} is not drawn: {error}")

    def publish(self, agent: Agent) -> None:
        """The agent's weights are what the run offers from now on."""
        if agent.steps:
            counters = {STEPS: agent.steps, MATCHES: agent.counters[MATCHES], AGENT: agent.number}
            self._checkpoints.save(agent.member.trainer, counters, {})
