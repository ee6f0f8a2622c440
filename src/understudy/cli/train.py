"""`understudy train`: learn a game at the full speed of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from understudy.cli.options import (
    Bots,
    JsonAtEnd,
    NewRun,
    RayMode,
    SetOption,
    WithDashboard,
    Workers,
    check_workers,
    config_from,
    parsed,
)
from understudy.core.errors import ConfigError, nearest
from understudy.core.toml import value_of
from understudy.supervise.budget import Budget
from understudy.supervise.interrupts import INTERRUPTED
from understudy.telemetry.text import complain

if TYPE_CHECKING:
    from understudy.policy.spec import AnyNetwork
    from understudy.training.environments.session import EnvironmentSession
    from understudy.training.exploiter import Victim
    from understudy.training.session import TrainSession

_ARENA_STEPS, _ENVIRONMENT_STEPS = 20_000_000, 200_000
_ENVIRONMENT_EVALUATION = 100
_EVIDENCE = {"latest": "matches", "simulator": "simulator"}
"""Choices of --evidence, each with its setting: training has no matches that a coin assigns."""
_OF_ENVIRONMENTS = {"curriculum": "environment_curriculum"}
"""Configs that are others in an environment, which has no bots and rewards of brawl."""
_PLAIN_CONFIG = "small"
"""For networks that no settings are named after."""
_SMALL_GAME_CONFIG = "plain"
"""For custom games and games of one player."""


def train(
    game: Annotated[
        str,
        typer.Argument(help="A game: brawl, FILE.py:GAME, gymnasium:ID, pettingzoo:MODULE or ai2."),
    ],
    network: Annotated[
        str | None,
        typer.Option(help="The network: small, medium, seed ... (default: the config's)."),
    ] = None,
    preset: Annotated[str | None, typer.Option(hidden=True)] = None,
    config: Annotated[
        str | None,
        typer.Option(help="Named settings, or a .toml file (default: those of the network)."),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option(
            help="Decisions of the whole run, such as 10M (default: the config's, or 20M)."
        ),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="A budget of time instead, compilation included.")
    ] = None,
    opponents: Annotated[
        str | None,
        typer.Option(help="Who is met how often: based=1.5,random=1,self=2 (default: all)."),
    ] = None,
    delay: Annotated[
        int | None, typer.Option(help="Frames until a side sees what happened (reaction time).")
    ] = None,
    actions: Annotated[
        str | None, typer.Option(help="What is chosen: chords (default) or keys.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            help="Handed to an environment or a custom game when it is made: size=5. Repeatable."
        ),
    ] = None,
    bots: Bots = None,
    stage: Annotated[
        str | None, typer.Option(help="Stay in this stage of the curriculum, whatever happens.")
    ] = None,
    exploit: Annotated[
        str | None,
        typer.Option(help="RUN or RUN@VERSION: train against it alone, to see how weak it is."),
    ] = None,
    population: Annotated[
        int | None,
        typer.Option(help="Train this many agents side by side; the worst follow the best."),
    ] = None,
    evidence: Annotated[
        str | None,
        typer.Option(
            help="What makes a champion: latest (default), or simulator: better in frozen matches."
        ),
    ] = None,
    terms: Annotated[
        list[str] | None,
        typer.Option(help="A .py file or module with reward terms of one's own. Repeatable."),
    ] = None,
    workers: Workers = None,
    ray: RayMode = None,
    asynchronous: Annotated[
        bool | None,
        typer.Option(
            "--async/--no-async",
            help="Workers play while the learner learns, with weights at most one update old "
            "(default: --no-async).",
        ),
    ] = None,
    devices: Annotated[
        str | None,
        typer.Option(help="GPUs of this host that share the games: all, or a number (default: 1)."),
    ] = None,
    evaluate: Annotated[
        int | None,
        typer.Option(
            "--eval", help="Frozen matches of an environment at the end (default: 100; 0: none)."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seeds everything (default: the run's, else 0).")
    ] = None,
    run: NewRun = None,
    resume: Annotated[bool, typer.Option(help="Go on with the run of --run.")] = False,
    dashboard: WithDashboard = False,
    set_: SetOption = None,
    json: JsonAtEnd = False,
) -> None:
    """Train an agent by playing hundreds of matches side by side, as fast as the machine can.

    Ctrl-C or SIGTERM ends early and keeps everything (exit code 130 or 143); --resume goes on.

    Example: understudy train brawl --config curriculum --run runs/x
    """
    from understudy.cli.train_screen import TrainScreen
    from understudy.registry.run_folder import newest
    from understudy.supervise.dashboard import dashboard_beside
    from understudy.training import train as training

    if preset is not None:
        if network is not None:
            raise ConfigError("--preset: the old name of --network; give one of them")
        complain("--preset is called --network now, as in `play` and `serve`; it still works")
    options = _TrainOptions(
        game, network or preset, config, _parse_count(steps), minutes, seed, run, resume, set_ or []
    )
    session: TrainSession | EnvironmentSession
    count, mode = check_workers(game, workers, ray)
    with TrainScreen(quiet=json, before=newest(options.before)) as screen:
        if options.of_environment:
            options.refuse(
                "belongs to games in the arena, not to environments",
                delay=delay, actions=actions, exploit=exploit, population=population,
                evidence=evidence, terms=terms, devices=devices,
            )  # fmt: skip
            session = options.environment_session(
                option or [],
                evaluate,
                opponents=opponents,
                stage=stage,
                bots=tuple(bots or ()),
                workers=count,
                ray=mode,
                asynchronous=asynchronous,
            )
        else:
            options.refuse(
                "belongs to environments, such as pettingzoo:my_game; this game plays in the arena",
                **{"eval": evaluate, "async": asynchronous},
            )
            chosen = options.load_game(option or [], bots or [], delay=delay, actions=actions)
            options.load_terms(terms or [])
            session = options.session(
                chosen,
                opponents=opponents,
                stage=stage,
                exploit=exploit,
                population=population,
                evidence=evidence,
                devices=_parse_devices(devices),
            )
        try:
            with dashboard_beside(session.run, wanted=dashboard):
                summary = training.train(session, screen)
        except KeyboardInterrupt:  # pressed again: only what was kept until then
            raise typer.Exit(INTERRUPTED) from None
        screen.close(summary)


class _TrainOptions:
    """The options of the command, and the session that they make."""

    def __init__(
        self,
        game: str,
        preset: str | None,
        config: str | None,
        steps: int | None,
        minutes: float | None,
        seed: int | None,
        run: Path | None,
        resume: bool,
        set_: list[str],
    ) -> None:
        from understudy.registry.run_folder import RunFolder, latest

        self.game, self.preset, self.config, self.set = game, preset, config, set_
        self.steps, self.minutes, self.resume = steps, minutes, resume
        self.run = latest() if resume and run is None else run
        self.before = RunFolder.kept(self.run) if resume else None
        old = self.before.config.learner.seed if self.before else 0
        self.seed = old if seed is None else seed

    @property
    def of_environment(self) -> bool:
        """Whether the game is a Gymnasium or PettingZoo environment."""
        from understudy.adapters.environments.factory import is_environment

        return is_environment(self.game)

    def refuse(self, why: str, **given: object) -> None:
        """An error for options that the game does not have."""
        for name, value in given.items():
            if value is not None:
                raise ConfigError(f"--{name}: {self.game} has no such choice: it {why}")

    def load_game(self, pairs: list[str], bots: list[str], **flags: object) -> dict[str, str]:
        """Load a custom game and bots; returns the game's options as text, the run's among them.

        From here on `game` is the name in the catalog.
        """
        from understudy.cli.options import game_options
        from understudy.games import custom

        chosen = {name: str(value) for name, value in flags.items() if value is not None}
        chosen |= game_options(pairs)
        if self.before:
            chosen = self.before.identity.game_options | chosen
        if custom.is_custom(self.game):
            self.game = custom.load_game(self.game, chosen)
        elif self.before:  # by the name that the run remembers
            self.before.load_code()
        for source in bots:
            custom.add_bots(self.game, source, flag="--bots")
        if self.before and self.before.identity.game_name == self.game:
            for note in self.before.load_code():
                complain(note)
        return chosen

    def load_terms(self, modules: list[str]) -> None:
        """Load custom reward terms; only the command line may name their modules."""
        from understudy.games.rewards import load_terms

        for module in modules:
            load_terms(module, flag="--terms")

    def session(
        self,
        options: Mapping[str, str],
        *,
        opponents: str | None,
        stage: str | None,
        exploit: str | None,
        population: int | None,
        evidence: str | None,
        devices: int | Literal["all"],
    ) -> TrainSession:
        """A session in the arena."""
        from understudy.training.named_configs import config
        from understudy.training.session import TrainSession

        chosen = dict(options)
        settings: dict[str, object] = {"learner.seed": self.seed}
        for key, value in (
            ("train.preset", self.preset),
            ("train.opponents", opponents),
            ("curriculum.pin", stage),
            ("population.agents", population),
            ("promotion.evidence", _evidence_named(evidence)),
        ):
            if value is not None:
                settings[key] = value
        kept = None
        if self.before and not self.preset:
            kept, settings["train.preset"] = (
                self.before.spec.network,
                self.before.config.train.preset,
            )
        if exploit is not None:
            if opponents is not None:
                raise ConfigError("--opponents: an exploiter meets the agent of --exploit alone")
            victim = self._victim(exploit, chosen)
            settings |= {"league.exploits": victim.agent, "train.groups": 1, "train.preset": ""}
            kept, chosen = victim.network, dict(victim.options)
        base = self.before.config if self.before else None
        if self.config or base is None:
            base = config(self.config or (_PLAIN_CONFIG if kept else self._named_after_preset()))
        resolved = config_from(self.set, base=base, defaults=settings)
        if resolved.train.preset != settings.get("train.preset", resolved.train.preset):
            whose = "--network" if self.preset else "the run"
            raise ConfigError(f"--set: train.preset: the network is that of {whose}, and stays")
        if opponents is not None and resolved.curriculum.stages:
            raise ConfigError("--opponents: the stages of the curriculum say whom they meet")
        return TrainSession(
            game=self.game,
            game_options=chosen,
            run=self._folder(self.game),
            network=kept or self._fitted(self._network(resolved.train.preset), chosen),
            config=resolved,
            budget=self._budget(resolved.train.steps or _ARENA_STEPS),
            resume=self.resume,
            devices=devices,
        )

    def _named_after_preset(self) -> str:
        """The config that goes with the network, where no config was named."""
        from understudy.training.named_configs import names
        from understudy.training.train import preset_for_this_machine

        if self.preset is None and self._is_small_game():
            return _SMALL_GAME_CONFIG
        preset = self.preset or preset_for_this_machine()
        return preset if preset in names() else _PLAIN_CONFIG

    def _is_small_game(self) -> bool:
        """Whether to begin with a plain network: in custom games, where a quick answer counts, and
        in games of one player, who has no opponent to recognise."""
        from understudy.games import catalog

        return catalog.code_of(self.game) is not None or catalog.make(self.game).players == 1

    def _network(self, preset: str) -> AnyNetwork:
        from understudy.policy.presets import network
        from understudy.training.train import preset_for_this_machine

        flag = "--network" if self.preset else "train.preset"
        return network(preset or preset_for_this_machine(), flag=flag)

    def _fitted(self, network: AnyNetwork, options: Mapping[str, str]) -> AnyNetwork:
        """The preset, as wide as the game needs it."""
        from understudy.games import catalog
        from understudy.games.base import opponent_features
        from understudy.policy.presets import fitted

        return fitted(
            network,
            opponent_features=opponent_features(catalog.make(self.game, **options)),
            opponents=len(catalog.bots(self.game, **options)) + 1,
        )

    def _victim(self, agent: str, options: Mapping[str, str]) -> Victim:
        from understudy.training.exploiter import victim

        if self.preset:
            raise ConfigError("--network: an exploiter has the network of the agent it exploits")
        return victim(self.game, agent, options)

    def environment_session(
        self,
        pairs: list[str],
        evaluate: int | None,
        *,
        opponents: str | None,
        stage: str | None,
        bots: tuple[str, ...],
        workers: int,
        ray: str,
        asynchronous: bool | None,
    ) -> EnvironmentSession:
        """A session in an environment."""
        from understudy.adapters.environments.factory import bots_of
        from understudy.adapters.environments.factory import resolved as resolved_options
        from understudy.policy.presets import network
        from understudy.training.environments.session import EnvironmentSession, environment_config
        from understudy.training.named_configs import config

        base = self.before.config if self.before else environment_config()
        if self.config:
            base = config(_OF_ENVIRONMENTS.get(self.config, self.config))
        before = self.before.identity.game_options if self.before else {}
        options = {name: value_of(text) for name, text in before.items()}
        options |= dict(parsed(one, flag="--option", example="opponent=based") for one in pairs)
        settings: dict[str, object] = {"learner.seed": self.seed}
        if self.before and not bots:  # where the run remembers them
            bots = tuple(one.find(self.before.root) for one in self.before.identity.bot_code)
        else:
            bots = (*bots_of(self.game, options), *bots)
        if opponents is not None:
            # Without scripted bots, `all` of them is the random one.
            settings["train.opponents"] = (
                "random" if (opponents, bots) == ("all", ()) else opponents
            )
        if stage is not None:
            settings["curriculum.pin"] = stage
        if asynchronous is not None:
            settings["train.asynchronous"] = asynchronous
        resolved = config_from(self.set, base=base, defaults=settings)
        if opponents is not None and resolved.curriculum.stages:
            raise ConfigError("--opponents: the stages of the curriculum say whom they meet")
        kept = self.before.spec.network if self.before and not self.preset else None
        return EnvironmentSession(
            environment=self.game,
            options=resolved_options(self.game, options),
            run=self._folder(self.game.replace(":", "-").replace("/", "-")),
            budget=self._budget(resolved.train.steps or _ENVIRONMENT_STEPS),
            evaluate=_ENVIRONMENT_EVALUATION if evaluate is None else evaluate,
            resume=self.resume,
            network=kept
            or network(self.preset or resolved.train.preset or "mlp", flag="--network"),
            config=resolved,
            bots=bots,
            workers=workers,
            ray=ray,
        )

    def _budget(self, default: int) -> Budget:
        unsaid = self.steps is None and self.minutes is None
        return Budget(steps=default if unsaid else self.steps, minutes=self.minutes)

    def _folder(self, name: str) -> Path:
        from understudy.registry.run_folder import new_run

        return self.run or new_run(name)


def _evidence_named(name: str | None) -> str | None:
    """The setting that a choice of --evidence stands for."""
    if name is None:
        return None
    if name not in _EVIDENCE:
        raise ConfigError(
            f"--evidence: expected one of {', '.join(_EVIDENCE)}, got {name!r}."
            f"{nearest(name, _EVIDENCE)}"
        )
    return _EVIDENCE[name]


def _parse_devices(text: str | None) -> int | Literal["all"]:
    if text == "all":
        return "all"
    if text is None:
        return 1
    if not (text.isdecimal() and int(text) >= 1):
        raise ConfigError(f"--devices: expected all, or a number from 1 on; got {text!r}")
    return int(text)


def _parse_count(text: str | None) -> int | None:
    """`10_000_000`, `10M` or `200k` as a number."""
    if text is None:
        return None
    body, factor = text.strip().replace(",", "_"), 1
    if body[-1:].lower() in ("k", "m"):
        factor = 1000 if body[-1].lower() == "k" else 1_000_000
        body = body[:-1]
    try:
        number = float(body) * factor
    except ValueError:
        number = 0.0
    if not (number >= 1 and number.is_integer()):
        raise ConfigError(f"--steps: expected a whole number such as 10_000_000, got {text!r}")
    return int(number)
