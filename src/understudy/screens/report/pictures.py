"""The pictures of a report that matplotlib draws, as figures with the PNG inside.

Without matplotlib a report has none of them and says so; its line charts need no library. The
pictures hold no name of the run: matplotlib would read some of its characters as formulas.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

from understudy.core.errors import MissingDependency
from understudy.screens import curves, family_tree
from understudy.screens.html.elements import Element, picture, tag
from understudy.screens.report.facts import ReportFacts

_DPI = 100


def training_curves(facts: ReportFacts) -> Iterator[Element]:
    """The curves of a training run over its steps."""
    history = facts.history
    if history is not None:
        yield _wide(
            "Training over its steps",
            "Six views of the same training; a step is one decision that was trained on. Grey "
            "bands are stages of the curriculum; dots are matches of frozen checkpoints.",
            lambda: curves.draw(history, title="Training"),
            alt="Six line charts over the steps of training: win rate by opponent, return and its "
            "terms, losses, entropy and KL divergence, learning rate and gradient, rating.",
        )


def promotion_story(facts: ReportFacts) -> Iterator[Element]:
    """Who played which match, and the evidence of each test."""
    told = facts.promotion
    if told is None or not (
        any(one.counts for one in told.matches) or any(len(one.pairs) for one in told.trials)
    ):
        return

    def drawn() -> bytes:
        from understudy.analysis.promotion import promotion_figure

        figure = promotion_figure(told, title="")
        data = io.BytesIO()
        figure.savefig(data, format="png", dpi=_DPI)
        return data.getvalue()

    yield _wide(
        "Who played, and the evidence",
        "Above: one mark for each match, in the row of who played it. Middle: the evidence of each "
        "test; where the blue line reaches its dashed line, the tested version is promoted; where "
        "the orange one does, it is stopped. Below: the results of each player with 95% intervals.",
        drawn,
        alt="Three panels: matches by player in their order, evidence for and against each tested "
        "version, and the mean result of each player with its interval.",
    )


def family(facts: ReportFacts) -> Iterator[Element]:
    """Which agent of a population descends from which."""
    lineage = facts.lineage
    if lineage is None or not lineage.rounds:
        return
    last = lineage.of_round(lineage.rounds)
    fitness = [row.fitness for row in last]
    best = max(range(len(fitness)), key=lambda index: fitness[index] or 0.0) + 1
    yield _wide(
        "Who descends from whom",
        "One bar for each agent; where a bar changes its line, the agent was replaced by a changed "
        "copy of a better one. Below: the settings that evolved.",
        lambda: family_tree.draw(
            lineage, fitness, best=best, steps=lineage.steps, title="Population"
        ),
        alt="A tree of the agents of a population, coloured by score, and their settings over "
        "time.",
    )


def _wide(heading: str, explains: str, draw: Callable[[], bytes], *, alt: str) -> Element:
    try:
        shown = picture(draw(), alt=alt)
    except (MissingDependency, ImportError) as error:
        why = str(error) if isinstance(error, MissingDependency) else f"it needs {error.name}"
        return tag(
            "figure",
            tag("h3", heading),
            tag("p", f"This picture is missing: {why}.", class_="soft"),
            class_="wide",
        )
    return tag(
        "figure",
        tag("h3", heading),
        tag("figcaption", explains),
        # On a narrow screen it scrolls, also by the keyboard.
        tag("div", shown, class_="scroll", tabindex="0", role="group", aria__label=heading),
        class_="wide",
    )
