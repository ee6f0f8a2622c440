"""A recorded match as data: the frames that were played, and what the policy thought in them."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from understudy import Understudy
from understudy.core.arrays import NDArray
from understudy.core.clock import SystemClock
from understudy.core.ops import NUMPY
from understudy.core.user_code import CodeSource
from understudy.experience import episode as episodes
from understudy.experience.episode import Episode
from understudy.games import catalog, custom
from understudy.games.match_drawing import ShapesDrawing
from understudy.judging.replay_frames import replay_lines
from understudy.judging.replays import listed
from understudy.match.live_match import LiveMatch
from understudy.match.recordings import MatchRecordings, RecordedMatch, RecordingMeta
from understudy.match.replaying import checksum, played_again, replay_tags
from understudy.policy.mlp import Mlp
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.policy.strategist import Strategist
from understudy.policy.weights import encode, fresh, normalise
from understudy.registry.pointers import LATEST
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS, Manifest
from understudy.run.replay_process import replay_command

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "tictactoe.py"
WINDOW = 5
HOSTILE = "<img src=x onerror=alert(1)>"
THOUSANDTH = 0.0011


def strategist(opponent: int) -> Strategist:
    return Strategist(
        width=8, heads=2, layers=1, feed=8, window=WINDOW, latent=4, lstm=8, head_widths=(8,),
        opponent=opponent, kinds=3,
    )  # fmt: skip


def commit(folder: RunFolder, number: int, *, sharp: float = 200.0) -> None:
    """A version of random weights whose choices are not all alike."""
    weights = fresh(folder.spec, np.random.default_rng(number))
    weights.params["policy.w"] *= sharp
    manifest = Manifest(number=number, parent=None, created_at=0.0, spec=folder.spec)
    folder.versions.commit(manifest, {WEIGHTS: encode(weights)})
    for pointer in ("candidate", "champion"):
        folder.pointers.move(pointer, number, by=LATEST)


def played_swarm(root: Path, network: AnyNetwork, *, versions: int = 1) -> RunFolder:
    """A run of swarm with one episode, which its newest version played."""
    game: Any = catalog.make("swarm")
    spec = PolicySpec(game.features, game.actions, network)
    rules = f"swarm {game.version}"
    folder = RunFolder.open(root, spec=spec, config=None, clock=SystemClock(), game=rules)
    for number in range(1, versions + 1):
        commit(folder, number)
    live = LiveMatch(game, 7)
    with (
        Understudy.open(
            root, features=game.features, actions=game.actions, network=network, mode="learn",
            learner="off", game=rules,
        ) as mind,
        mind.match(**live.tags, **replay_tags(game, 7)) as match,
    ):  # fmt: skip
        while not live.over:
            action = match.decide(live.observe(), legal=live.legal())
            match.reward(live.act(game.actions.names.index(action)))
        match.finish(live.outcome())
    return folder


def episode_of(folder: RunFolder) -> tuple[Path, Episode]:
    (path,) = (folder.root / "buffer").glob("*.npz")
    return path, episodes.decode(path.read_bytes(), folder.spec, what=path.name)


def stream(folder: RunFolder, which: str | None = None) -> list[dict[str, Any]]:
    named = which or next(listed(folder)).id
    return [msgspec.json.decode(line) for line in replay_lines(folder, named)]


def frames_of(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [frame for one in records if one["kind"] == "frames" for frame in one["frames"]]


def whole_shapes(frames: list[dict[str, Any]]) -> list[list[list[int]]]:
    """The shapes of each frame, as the painter puts them together."""
    found: list[list[list[int]]] = []
    for frame in frames:
        shapes: list[list[int]] = []
        for part in frame["shapes"]:
            shapes += [part] if len(part) > 2 else found[-1][part[0] : sum(part)]
        found.append(shapes)
    return found


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Tests only look at it."""
    return played_swarm(tmp_path_factory.mktemp("ring") / "run", strategist(15))


@pytest.fixture(scope="module")
def records(swarm: RunFolder) -> list[dict[str, Any]]:
    return stream(swarm)


Records = list[dict[str, Any]]


def test_an_episode_becomes_a_header_frames_and_an_end(swarm: RunFolder, records: Records) -> None:
    _, episode = episode_of(swarm)
    header, *chunks, end = records
    frames = frames_of(chunks)
    assert (header["kind"], end["kind"]) == ("header", "end")
    assert header["frames"] == len(episode) == len(frames) - 1
    assert [one["first"] for one in chunks] == list(range(0, len(frames), 60))
    assert header["parts"] == [{"name": "action", "options": list(swarm.spec.actions.names)}]  # type: ignore[union-attr]
    assert [player.get("learner", False) for player in header["players"]] == [True, False]
    assert header["outcome"] == str(episode.meta.outcome) and header["seed"] == 7
    assert [frame["thought"]["did"] for frame in frames[:-1]] == episode.actions.tolist()
    assert "thought" not in frames[-1] and "thought" in frames[0]
    events = [event for one in chunks for event in one.get("events", [])]
    assert events[-1]["words"] == end["result"] and events[-1]["frame"] == len(episode)
    assert end["reward"] == pytest.approx(float(episode.rewards.sum()), abs=1e-3)


def test_the_shapes_of_every_frame_are_those_that_are_drawn(
    swarm: RunFolder, records: Records
) -> None:
    _, episode = episode_of(swarm)
    header, *rest = records
    drawing = ShapesDrawing(catalog.make("swarm"), ("run",))
    states = played_again(catalog.make("swarm"), 7, episode.actions[:, None])
    palette = [*header["palette"], *(one for part in rest for one in part.get("palette", []))]
    texts = [*header["texts"], *(one for part in rest for one in part.get("texts", []))]
    for state, shapes in zip(states, whole_shapes(frames_of(rest)), strict=True):
        scene = drawing.scene(state)
        drawn = scene.shapes[scene.fixed :]
        assert len(shapes) == len(drawn)
        for (kind, colour, *numbers), shape in zip(shapes, drawn, strict=True):
            assert palette[colour] == "#{:02x}{:02x}{:02x}".format(*shape.paint.rgb)
            if kind == 4:
                assert texts[numbers.pop()] == shape[2]
            expected = [one for one in shape[:-2] if type(one) in (int, float)]
            apart = np.array(numbers) * header["unit"] - np.array(expected)
            assert np.abs(apart).max() <= header["unit"], shape


def test_what_the_policy_thought_is_what_was_recorded(swarm: RunFolder, records: Records) -> None:
    """The log-probability and the value of every decision, which the bot recorded as it played."""
    _, episode = episode_of(swarm)
    header, *rest = records
    thoughts = [frame["thought"] for frame in frames_of(rest)[:-1]]
    assert rest[-1]["deviation"] < 1e-5 and header["versions"] == [1]
    assert episode.sampled.all() and len({tuple(one["odds"][0]) for one in thoughts}) > 10
    for number, thought in enumerate(thoughts):
        probability = np.exp(episode.log_probs[number])
        assert thought["chosen"] / 1000 == pytest.approx(probability, abs=THOUSANDTH)
        assert thought["odds"][0][thought["did"][0]] == thought["chosen"]
        assert sum(thought["odds"][0]) == pytest.approx(1000, abs=3)
        assert thought["value"] == pytest.approx(float(episode.values[number]), abs=1e-3)
    assert [one.get("version") for one in thoughts] == [1] + [None] * (len(thoughts) - 1)


def test_attention_is_that_of_the_network(swarm: RunFolder, records: Records) -> None:
    _, episode = episode_of(swarm)
    header, *rest = records
    policy = swarm.versions.policy(1)
    network, memory = policy.spec.network, policy.begin()
    assert isinstance(network, Strategist) and header["window"] == WINDOW
    for number, frame in enumerate(frames_of(rest)[:-1]):
        obs = normalise(NUMPY, policy.weights, episode.observations[number][None])
        insight = network.step_insight(NUMPY, policy.weights.params, obs, memory)
        memory, expected = insight.memory, np.asarray(insight.attention)[0]
        thought = frame["thought"]
        digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        levels = np.array([digits.index(one) for one in thought["attention"]]) / 61
        np.testing.assert_allclose(levels * thought["most"] / 1000, expected, atol=0.01)


def test_a_version_that_is_gone_is_told_of_and_the_record_still_shown(
    swarm: RunFolder, tmp_path: Path
) -> None:
    shutil.copytree(swarm.root, tmp_path / "run")
    folder = RunFolder.load(tmp_path / "run", SystemClock())
    shutil.rmtree(folder.versions.folder(1))
    _, episode = episode_of(folder)
    header, *rest = stream(folder)
    (missing,) = header["missing"]
    assert missing["part"] == "policy" and "Version 1 is no longer kept" in missing["why"]
    assert header["window"] == 0 and header["opponents"] == []
    for number, frame in enumerate(frames_of(rest)[:-1]):
        thought = frame["thought"]
        assert "odds" not in thought and "attention" not in thought
        assert thought["value"] == pytest.approx(float(episode.values[number]), abs=1e-3)
        assert thought["chosen"] / 1000 == pytest.approx(
            np.exp(episode.log_probs[number]), abs=THOUSANDTH
        )


def test_an_untrained_policy_and_a_plain_network_say_what_they_lack(tmp_path: Path) -> None:
    folder = played_swarm(tmp_path / "run", Mlp((4,)), versions=0)
    header, *rest = stream(folder)
    assert header["versions"] == [0] and rest[-1]["deviation"] < 1e-6
    assert [one["part"] for one in header["missing"]] == ["belief", "attention"]
    assert all("mlp" in one["why"] for one in header["missing"])


def test_a_served_territory_says_why_it_cannot_be_replayed(
    swarm: RunFolder, tmp_path: Path
) -> None:
    shutil.copytree(swarm.root, tmp_path / "run")
    folder = RunFolder.load(tmp_path / "run", SystemClock())
    path, episode = episode_of(folder)
    meta = msgspec.structs.replace(episode.meta, tags={"territory": "t1", "client": "c"})
    path.write_bytes(episodes.encode(dataclasses.replace(episode, meta=meta)))
    (row,) = listed(folder)
    (line,) = stream(folder, row.id)
    for words in (row.problem, line["words"]):
        assert "a server recorded it" in words and "no state of the game" in words
    assert line["kind"] == "problem"


def test_the_process_writes_lines_and_nothing_else(swarm: RunFolder) -> None:
    which = next(listed(swarm)).id
    done = subprocess.run(
        replay_command(swarm.root, which), capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"".join(replay_lines(swarm, which))


def test_a_match_that_is_not_there_is_a_problem(swarm: RunFolder) -> None:
    (line,) = stream(swarm, "zz")
    assert line["kind"] == "problem" and "expected one episode, found 0" in line["words"]


# --- a recording of a training, of a custom game -----------------------------------------------


@pytest.fixture
def recorded(tmp_path: Path, fresh_code: None) -> RunFolder:
    """A run of tic-tac-toe with a recorded match in which the learner was the second player."""
    code = tmp_path / "my_game.py"
    code.write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    name = custom.load_game(f"{code}:TicTacToe")
    game = catalog.make(name)
    loaded, class_name = catalog.code_of(name) or pytest.fail("no code")
    root = tmp_path / "run"
    folder = RunFolder.open(
        root,
        spec=PolicySpec(game.features, game.actions, strategist(len(game.features))),
        config=None,
        clock=SystemClock(),
        game=f"{name} {game.version}",
        game_code=CodeSource.of(loaded, root, name=class_name),
    )
    commit(folder, 1)
    cells = [0, 4, 1, 2, 8, 6]  # noughts, the second player, win on the diagonal 2-4-6
    actions = np.array(
        [[[cell], [9]] if turn % 2 == 0 else [[9], [cell]] for turn, cell in enumerate(cells)],
        np.uint8,
    )
    states = played_again(game, 3, actions.astype(np.int32))
    checksums: NDArray = np.array([checksum(NUMPY, state)[0] for state in states[1:]], np.uint32)
    MatchRecordings(root).put(RecordedMatch(_meta(name, len(cells)), actions, checksums))
    return folder


def _meta(game: str, frames: int, **fields: Any) -> RecordingMeta:
    known: dict[str, Any] = {
        "game": game, "rules": 1, "engine": "jax", "seed": 3, "side": 1, "opponent": HOSTILE,
        "score": 1, "frames": frames, "version": 1, "steps": 10, "recorded_at": 0.0,
    }  # fmt: skip
    return RecordingMeta(**{**known, **fields})


def test_a_recording_of_a_custom_game_shows_what_its_version_thinks(recorded: RunFolder) -> None:
    header, *rest = stream(recorded, "1")
    frames = frames_of(rest)
    assert [one["name"] for one in header["players"]] == [HOSTILE, "run"]  # text, as it is
    assert [one.get("learner", False) for one in header["players"]] == [False, True]
    assert header["opponents"] == ["random", "rules", "a snapshot of this run"]
    assert header["missing"] == [] and "version 1" in header["note"]
    policy, game = recorded.versions.policy(1), catalog.make("tictactoe")
    network, params = policy.spec.network, policy.weights.params
    assert isinstance(network, Strategist)
    match = MatchRecordings(recorded.root).load(1)
    states = played_again(game, 3, match.actions.astype(np.int32))[:-1]
    seen = np.stack([game.observe(NUMPY, state)[1, :, 0] for state in states])[:, None]
    legal = np.stack([game.legal(NUMPY, state)[1, :, 0] for state in states])
    obs = normalise(NUMPY, policy.weights, seen)
    first = np.zeros((len(states), 1), np.bool_)
    insight = network.unroll_insight(NUMPY, params, obs, first, policy.begin())
    odds = np.where(legal, np.exp(insight.logits[:, 0]), 0.0)
    assert insight.kind_logits is not None
    kinds = np.exp(insight.kind_logits[:, 0])
    for number, frame in enumerate(frames[:-1]):
        thought = frame["thought"]
        expected = odds[number] / odds[number].sum()
        np.testing.assert_allclose(np.array(thought["odds"][0]) / 1000, expected, atol=2e-3)
        belief = kinds[number] / kinds[number].sum()
        np.testing.assert_allclose(np.array(thought["belief"]) / 1000, belief, atol=2e-3)
        assert thought["did"] == match.actions[number, 1].tolist()
        assert thought["theirs"] == match.actions[number, 0].tolist()
    assert rest[-1]["result"] == "run wins" and rest[-1]["deviation"] is None


def test_a_match_from_before_the_first_version_says_so(recorded: RunFolder) -> None:
    match = MatchRecordings(recorded.root).load(1)
    earlier = dataclasses.replace(match, meta=_meta("tictactoe", match.meta.frames, version=0))
    number = MatchRecordings(recorded.root).put(earlier)
    header, *rest = stream(recorded, str(number))
    (missing,) = header["missing"]
    assert missing["part"] == "policy" and "before the run kept its first version" in missing["why"]
    assert header["note"] == "" and len(frames_of(rest)) == match.meta.frames + 1
