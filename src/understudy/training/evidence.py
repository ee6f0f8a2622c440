"""Evidence in training: a simulator beside it tests versions and moves the champion.

With `promotion.evidence = "simulator"` a version becomes the champion once it is better by evidence
in matches against the present champion; against the game's rules, a scripted bot, before the first.
Training itself reads none of it, so it learns the same with and without tests.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from understudy.core.errors import ConfigError
from understudy.games import catalog
from understudy.promotion.candidates import stop_other_test
from understudy.promotion.promotion import Promotion
from understudy.registry.run_folder import RunFolder
from understudy.supervise.simulator import start_simulator
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.telemetry.verdicts import verdict_line

if TYPE_CHECKING:
    from understudy.supervise.process import SupervisedProcess
    from understudy.training.session import TrainProgress, TrainSession

_LOOK_EVERY_S = 1.0
_PATIENCE_S = 5.0
"""How long a simulator may take to end; a kill loses only the matches at hand."""


def check_evidence(session: TrainSession) -> None:
    """An error where the session and what the run has until now do not go together."""
    simulated = session.config.promotion.evidence == "simulator"
    if simulated and session.config.population.agents > 1:
        raise ConfigError(
            "--evidence: the best agent of a population is chosen by its rounds; "
            "leave --evidence simulator or --population out"
        )
    if simulated and session.config.league.exploits:
        raise ConfigError(
            "--evidence: an exploiter is judged by its victim alone; "
            "leave --evidence simulator or --exploit out"
        )
    if session.resume and not simulated:
        kept = RunFolder.kept(session.run)
        if kept is not None and kept.by_evidence:
            raise ConfigError(
                f"--evidence: the champion of {session.run} moves by evidence, and cannot follow "
                "the newest version again: expected --evidence simulator"
            )


class ChampionTests(AbstractContextManager["ChampionTests"]):
    """The tests of one session; nothing where the champion follows the newest version."""

    def __init__(self, session: TrainSession, folder: RunFolder, journal: Journal) -> None:
        self._promotion: Promotion | None = None
        self._process: SupervisedProcess | None = None
        self._told = 0
        self._run = folder.root
        self._looked = 0.0
        if session.config.promotion.evidence != "simulator":
            return
        rules = catalog.rules_named(session.game)
        self._promotion = Promotion(folder)
        self._told = len(self._promotion.verdicts)
        # Before the first commit: from the log on, no version becomes the champion by itself.
        self._promotion.declare(rules=rules, score=None)
        stop_other_test(
            self._promotion,
            simulator=True,
            problem=lambda text: journal.write(events.Problem(where="train", message=text)),
        )
        self._process = start_simulator(folder, journal, rules=rules, options={})

    @property
    def champion(self) -> int | None:
        """0: no version is better than the rules by evidence yet. None: nothing is tested."""
        return None if self._promotion is None else self._promotion.follow().incumbent

    def follow(self, progress: TrainProgress) -> None:
        """Add new verdicts to the news, once a second at most."""
        now = time.monotonic()
        if self._promotion is None or now - self._looked < _LOOK_EVERY_S:
            return
        self._looked = now
        self._promotion.follow()
        for one in self._promotion.verdicts[self._told :]:
            progress.news.append(verdict_line(one, self._run))
        self._told = len(self._promotion.verdicts)

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.stop(_PATIENCE_S)
