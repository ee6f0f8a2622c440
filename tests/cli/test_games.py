from __future__ import annotations

from .calling import understudy


def test_games_are_listed_with_their_options() -> None:
    called = understudy("games")
    assert called.code == 0
    for word in ("swarm", "rules version", "--difficulty", "very_hard", "adaptive", "rules"):
        assert word in called.out


def test_as_json() -> None:
    listed = {game["name"]: game for game in understudy("games", "--json").json}
    swarm, brawl = listed["swarm"], listed["brawl"]
    assert swarm["name"] == "swarm" and swarm["version"] >= 1
    assert set(swarm["options"]["difficulty"]) == {"easy", "medium", "hard", "very_hard"}
    assert "rules" in swarm["bots"]
    assert brawl["options"]["actions"] == ["chords", "keys"]
    assert brawl["options"]["delay"][0] == "0"
    assert "based" in brawl["bots"]
