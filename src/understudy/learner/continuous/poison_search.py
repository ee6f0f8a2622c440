"""The hunt: of the episodes whose batch failed, which one cannot be learned from?

Suspects are what was drawn and what the normaliser counted: either can make training fail. They are
tried alone, in ever smaller groups. Trying is not learning: nothing comes of it but knowing what to
set aside, so no sample is counted and no episode is condemned for a neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from understudy.core.errors import NotFinite
from understudy.learner.continuous.item_replay import ItemReplay
from understudy.learner.continuous.uncounted_episodes import UncountedEpisodes
from understudy.learner.intake import Intake
from understudy.telemetry import events
from understudy.telemetry.journal import Journal


def hunt(
    intake: Intake,
    items: ItemReplay,
    new: UncountedEpisodes,
    journal: Journal,
    *,
    hold: Callable[[Sequence[str]], None],
    attempt: Callable[[Sequence[str]], None],
) -> bool:
    """One step of it; False: nobody is suspected.

    `hold` takes files of the buffer in; `attempt` raises `NotFinite` where files cannot be learned
    from, or kills the process, which the next start counts as the same.
    """
    suspects = intake.suspects
    group = suspects.next_group()
    if group is None:
        return False
    poison = suspects.poison()
    if poison is not None:
        items.discard(poison)
        new.discard(poison)
        intake.condemn(poison)
        return True
    hold(intake.named(group.names))  # a death has left them in the buffer
    gone = set(group.names) - set(items.names()) - set(new.names)
    for name in gone:
        suspects.forget(name)
    if gone:
        return True
    suspects.attempt(group.names)
    try:
        attempt(group.names)
    except NotFinite as error:
        journal.write(events.Problem(where="training", message=str(error)))
        suspects.failed(group.names)
    else:
        suspects.succeeded(group.names)
    return True
