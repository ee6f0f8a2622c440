"""eval, ratings, tournament and watch in a PettingZoo game that is not ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import understudy

TICTACTOE = "pettingzoo:pettingzoo.classic.tictactoe_v3"
BOTS = """
def first(observation, legal, rng):
    return int(legal.argmax())

BOTS = {"first": first}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that met random, a bot and its own past."""
    home = tmp_path_factory.mktemp("league")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        Path("my_bots.py").write_text(BOTS, encoding="utf-8")
        few = ("train.games=8", "train.segment=32", "league.save_freq=256", "learner.epochs=2",
               "monitor.csv=false")  # fmt: skip
        called = understudy(
            "train", TICTACTOE, "--bots", "my_bots.py", "--opponents", "all=1,self=2",
            "--steps", 1024, "--eval", 8, "--run", "run", "--json",
            *(part for one in few for part in ("--set", one)),
        )  # fmt: skip
        assert called.code == 0, called.err
        assert set(called.json["opponents"]) == {"random", "first", "self"}
        assert {"random", "first"} < set(called.json["eval"]["opponents"])
    return home


@pytest.fixture(autouse=True)
def there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)


def test_eval_names_players_as_in_the_arena() -> None:
    names = "all,league,run@1"
    call = ("eval", TICTACTOE, "--agent", "run", "--opponents", names, "--matches", 10)
    found = understudy(*call, "--json", "--csv", "found.csv").json
    kinds = {name: one["kind"] for name, one in found["opponents"].items()}
    assert kinds["random"] == kinds["first"] == "bot", "those that the run was trained with"
    assert kinds["league"] == "league" and kinds["run@1"] == "version"
    assert list(kinds.values()).count("snapshot") == 2
    assert found["opponents"]["random"]["matches"] == 10
    assert found == understudy(*call, "--json").json, "the same seed plays the same matches"
    assert Path("found.csv").read_text(encoding="utf-8").startswith("opponent,kind,matches")
    assert "frozen matches v each" in understudy(*call).out
    wrong = understudy("eval", TICTACTOE, "--agent", "run", "--opponents", "frist")
    assert wrong.code == 2 and "Did you mean 'first'?" in wrong.err
    assert "with a whole number, or RUN@step-N" in understudy(*call[:3], "run@x").err


def test_ratings_and_tournaments_have_one_scale() -> None:
    found = understudy("ratings", "--run", "run", "--matches", 6, "--players", 2, "--json").json
    assert found["opponents"]["random"]["fixed"] is True
    names = {one["name"] for one in found["frozen"]["standings"]}
    assert {"random", "first", "champion"} < names
    call = ("tournament", TICTACTOE, "random", "first", "run", "--bots", "my_bots.py")
    found = understudy(*call, "--matches", 8, "--json").json
    assert {one["name"] for one in found["standings"]} == {"random", "first", "run"}
    assert found["versions"]["run"] == 1
    assert sum(one["matches"] for one in found["standings"]) == 2 * 3 * 8


def test_a_match_is_watched_where_the_environment_draws() -> None:
    call = ("watch", TICTACTOE, "--left", "run", "--right", "first", "--bots", "my_bots.py")
    told = understudy(*call, "--json").json
    assert told["right"] == "first"
    assert told["steps"] >= 5 and sum(told["rewards"]) == 0.0
    shown = understudy("watch", TICTACTOE, "--left", "run", "--gif", "match.gif")
    assert shown.code == 0 and "Written: match.gif" in shown.out
    assert Path("match.gif").read_bytes().startswith(b"GIF8")
    contest = "pettingzoo:training.environments.contest"
    refused = understudy("watch", contest, "--left", "random", "--gif", "match.gif")
    assert refused.code == 2 and "--gif" in refused.err and "does not draw pixels" in refused.err


def test_a_run_is_resumed_with_its_bots_and_refuses_what_it_cannot_do() -> None:
    again = understudy("train", TICTACTOE, "--run", "run", "--resume", "--steps", 1536, "--json",
                       "--eval", 0)  # fmt: skip
    assert again.code == 0 and "first" in again.json["opponents"]
    for flag, value in (("--opponents", "based"), ("--bots", "none.py"), ("--workers", "-1")):
        refused = understudy("train", TICTACTOE, flag, value)
        assert refused.code == 2 and flag.strip("-") in refused.err, refused.err
    option = understudy("train", TICTACTOE, "--option", "size=4")
    assert option.code == 2 and f"--option: {TICTACTOE}: " in option.err and "size" in option.err
    alone = understudy("train", "gymnasium:CartPole-v1", "--opponents", "random")
    assert alone.code == 2 and "a league needs matches of two sides" in alone.err
    arena = understudy("train", "brawl", "--workers", 2)
    assert (
        arena.code == 2
        and "--workers: brawl has no such choice: it belongs to environments" in arena.err
    )


def test_workers_judge_the_same_and_say_what_ray_would_add() -> None:
    options = ("--opponents", "random,first", "--bots", "my_bots.py", "--matches", 24)
    call = ("eval", TICTACTOE, "--agent", "run", *options)
    alone = understudy(*call, "--json")
    shared = understudy(*call, "--workers", 2, "--json")
    assert shared.code == 0 and shared.json == alone.json
    told = understudy(*call, "--workers", 2)
    assert "2 workers, processes of this machine; with Ray" in told.err
    assert told.out == understudy(*call).out
    league = ("tournament", TICTACTOE, "random", "first", "run", "--bots", "my_bots.py", "--json")
    small = (*league, "--matches", 8)
    assert understudy(*small, "--workers", 3).json == understudy(*small).json


def test_more_workers_than_environments_are_told(tmp_path: Path) -> None:
    few = ("--set", "train.games=2", "--set", "train.segment=16", "--steps", 64, "--eval", 0)
    run = ("train", TICTACTOE, "--workers", 3, *few, "--run", tmp_path / "run")
    called = understudy(*run)
    assert called.code == 0 and "2 workers, processes of this machine" in called.err, called.err
    assert "there are 2 environments (--set train.games=3 makes more" in called.err


@pytest.mark.parametrize("command", ["eval", "tournament", "train"])
def test_ways_to_ray_that_do_not_fit_are_refused_before_anything_is_made(command: str) -> None:
    names = ("random", "first") if command == "tournament" else ()
    for options, expected in (
        (("--ray", "auto"), "--ray auto: say how many workers there are"),
        (("--workers", 2, "--ray", "ray://head:10001"), "ray job submit --working-dir"),
        (("--workers", 2, "--ray", "yes"), "--ray: expected local"),
    ):
        refused = understudy(command, TICTACTOE, *names, *options)
        assert refused.code == 2 and expected in refused.err, refused.err
    arena = understudy(command, "brawl", *names, "--ray", "local")
    assert arena.code == 2 and "--ray: brawl has no such choice" in arena.err
    if command == "train":
        refused = understudy(command, TICTACTOE, "--async")
        assert refused.code == 2 and "train.asynchronous: needs workers" in refused.err


def test_an_exported_file_plays_the_matches_of_its_version() -> None:
    export = understudy("export", "run", "--as", "module", "-o", "agent.py", "--force")
    assert export.code == 0, export.err
    options = ("--opponents", "random,run@1", "--matches", 6, "--json")
    found = [
        understudy("eval", TICTACTOE, "--agent", name, *options).json["opponents"]
        for name in ("run", "agent.py")
    ]
    assert found[0] == found[1]
    call = ("eval", TICTACTOE, "--agent", "run", "--opponents", "agent.py", "--matches", 2)
    assert understudy(*call, "--json").json["opponents"]["agent.py"]["kind"] == "file"
    other = understudy("eval", "pettingzoo:pettingzoo.classic.connect_four_v3", *call[2:])
    assert other.code == 2 and "not for pettingzoo:pettingzoo.classic.connect_four_v3" in other.err
