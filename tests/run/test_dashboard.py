"""The dashboard over HTTP and WebSockets: pages, updates, actions, and who may ask."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from run.dashboards import Standing, standing, unpacked
from understudy.core.clock import SystemClock
from understudy.core.errors import ConfigError
from understudy.core.pause import read_pause
from understudy.registry.run_folder import RunFolder
from understudy.run.dashboard import DashboardOptions
from understudy.screens.dashboard.pages import PAGES
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

TOKEN = "a-token-of-thirty-two-characters"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(tmp_path_factory.mktemp("runs"), "ring", "served", "arena")


@pytest.fixture(scope="module")
def board(runs: Path) -> Iterator[Standing]:
    with standing(runs) as found:
        yield found


def paused(run: Path) -> bool:
    now = read_pause(run)
    return now is not None and now.paused


def test_all_runs_are_listed_with_links_to_their_pages(board: Standing) -> None:
    status, headers, text = board.ask("/")
    assert status == 200
    assert all(f'href="/runs/{name}"' in text for name in ("ring", "served", "arena"))
    assert "script-src 'self'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize("run", ["ring", "served", "arena"])
def test_every_page_that_is_offered_opens(board: Standing, run: str) -> None:
    _, _, first = board.ask(f"/runs/{run}")
    pages = [piece.partition('"')[0] for piece in first.split(f'href="/runs/{run}/')[1:]]
    for page in pages:
        status, _, text = board.ask(f"/runs/{run}/{page}")
        assert status == 200, (page, text)
        assert '"finding problem"' not in text or page == "overview", page
        assert "data-part" in text


def test_an_environment_is_told_as_one(tmp_path: Path) -> None:
    with standing(unpacked(tmp_path, "host")) as board:
        assert "The policy that is trained, in its environment" in board.ask("/runs/host")[2]
        assert "environments cannot be recorded" in board.ask("/runs/host/replay")[2]


def test_a_page_without_inline_script_or_style(board: Standing) -> None:
    _, _, text = board.ask("/runs/ring")
    assert "<style" not in text
    assert " style=" not in text
    assert " onclick" not in text
    assert all("src=" in one.partition(">")[0] for one in text.split("<script")[1:])


@pytest.mark.parametrize(
    "path", ["/runs/none", "/runs/ring/none", "/none", "/static/x/none.js", "/static/x/..%2Fapp.py"]
)
def test_what_is_not_there_is_said(board: Standing, path: str) -> None:
    status, _, text = board.ask(path)
    assert status == 404
    assert "there is no" in text.lower() or "not found" in text.lower()


def test_a_page_is_updated_when_something_happens_and_only_in_the_part_that_changed(
    tmp_path: Path,
) -> None:
    unpacked(tmp_path, "ring")
    with standing(tmp_path) as board, board.follow("overview", "ring") as socket:
        first = json.loads(socket.recv(60))
        assert "log" in first["parts"]
        clock = SystemClock()
        journal = Journal(tmp_path / "ring" / "journal", "bot", clock)
        journal.write(events.Problem(where="<b>here</b>", message="a new thing"))
        while True:
            update = json.loads(socket.recv(60))
            if "a new thing" in update["parts"].get("log", [""])[0]:
                break
        html = update["parts"]["log"][0]
        assert "&lt;b&gt;here" in html
        assert "<b>" not in html
        assert "figures" not in update["parts"], "nothing changed there"


def test_learning_is_paused_and_goes_on(tmp_path: Path) -> None:
    unpacked(tmp_path, "ring")
    with standing(tmp_path) as board:
        status, answer = board.act("ring", "pause-learning")
        assert (status, answer) == (200, {"said": "Learning is paused."})
        assert paused(tmp_path / "ring")
        assert board.act("ring", "resume-learning")[0] == 200
        assert not paused(tmp_path / "ring")


def test_a_rollback_pins_a_version_and_a_release_lets_it_go(tmp_path: Path) -> None:
    unpacked(tmp_path, "ring")
    folder = RunFolder.load(tmp_path / "ring", SystemClock())
    version = folder.versions.numbers()[0]
    with standing(tmp_path) as board:
        status, answer = board.act("ring", "rollback", version=version)
        assert status == 200, answer
        champion = folder.pointers.read("champion")
        assert champion is not None
        assert (champion.version, champion.pinned) == (version, True)
        assert board.act("ring", "release")[0] == 200
        champion = folder.pointers.read("champion")
        assert champion is not None
        assert not champion.pinned


@pytest.mark.parametrize(
    ("run", "action", "asked", "words"),
    [
        ("ring", "rollback", {}, "expected the number of a version"),
        ("ring", "rollback", {"version": 999_999}, "999999"),
        ("ring", "stop", {}, "no promotion log"),
        ("ring", "delete", {}, "no action"),
        ("none", "release", {}, "no run"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    board: Standing, run: str, action: str, asked: dict[str, int], words: str
) -> None:
    status, answer = board.act(run, action, **asked)
    assert status == 409
    assert words in answer["error"]


def test_an_action_takes_json_of_its_own_pages_alone(board: Standing, runs: Path) -> None:
    path, json_ = "/runs/ring/do/pause-learning", "application/json"

    def post(body: object, kind: str, origin: str) -> tuple[int, dict[str, str], str]:
        return board.ask(path, method="POST", body=body, Content_Type=kind, Origin=origin)

    assert post({}, json_, "http://a.example")[0] == 403
    assert post({}, "text/plain", board.url)[0] == 415
    unknown = post({"verson": 3}, json_, board.url)
    assert unknown[0] == 400
    assert "verson" in unknown[2]
    assert not paused(runs / "ring")


PLACES = (
    "/", "/compare", "/login", "/live", "/static/x/dashboard.js", "/runs/ring",
    *(f"/runs/ring/{page.key}" for page in PAGES), "/runs/ring/matches/1.jsonl", "/no-such-page",
)  # fmt: skip
ACTIONS = (
    "pause-learning", "resume-learning", "rollback", "release", "approve", "stop", "no-such-action",
)  # fmt: skip


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"}, 403),
        ({"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors"}, 403),
    ],
)
def test_what_another_site_asks_for_is_refused_everywhere(
    board: Standing, runs: Path, headers: dict[str, str], status: int
) -> None:
    assert {board.ask(place, **headers)[0] for place in PLACES} == {status}
    given = {"Origin": board.url, "Content_Type": "application/json", **headers}
    asked = {
        board.ask(f"/runs/ring/do/{action}", method="POST", body={}, **given)[0]
        for action in ACTIONS
    }
    assert asked == {status} and not paused(runs / "ring")


def test_a_link_on_another_site_may_lead_here(board: Standing) -> None:
    given = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert board.ask("/runs/ring", **given)[0] == 200


def test_without_the_token_nothing_but_the_login_is_shown(runs: Path) -> None:
    wrong = {"Cookie": "understudy_dashboard=\u00e9", "Authorization": "Bearer \u00e9"}
    with standing(runs, token=TOKEN) as board:
        for headers in ({}, wrong):
            shown = {place for place in PLACES if board.ask(place, **headers)[0] != 303}
            assert shown == {"/login", "/static/x/dashboard.js"}
            given = {"Origin": board.url, "Content_Type": "application/json", **headers}
            asked = {
                board.ask(f"/runs/ring/do/{action}", method="POST", body={}, **given)[0]
                for action in ACTIONS
            }
            assert asked == {401}
    assert not paused(runs / "ring")


def test_foreign_origins_get_no_updates(board: Standing) -> None:
    with (
        pytest.raises(InvalidStatus) as refused,
        board.follow("overview", "ring", Origin="http://evil.example"),
    ):
        pass
    assert refused.value.response.status_code == 403


def test_with_a_token_nothing_is_shown_before_it_is_given(runs: Path) -> None:
    with standing(runs, token=TOKEN) as board:
        status, headers, _ = board.ask("/runs/ring")
        assert (status, headers["location"]) == (303, "/login")
        assert board.act("ring", "pause-learning")[0] == 401
        with pytest.raises(InvalidStatus), board.follow("overview", "ring"):
            pass
        assert board.ask("/runs/ring", Authorization=f"Bearer {TOKEN}")[0] == 200
        assert (
            board.ask("/runs/ring", Authorization="Bearer another-token-of-some-length")[0] == 303
        )
        cookie = _login(board, TOKEN)
        assert TOKEN not in cookie
        assert "httponly" in cookie.lower()
        assert "samesite=strict" in cookie.lower()
        kept = cookie.partition(";")[0]
        assert board.ask("/runs/ring", Cookie=kept)[0] == 200
        with board.follow("overview", "ring", Cookie=kept) as socket:
            assert "parts" in json.loads(socket.recv(60))


def _login(board: Standing, token: str) -> str:
    import http.client
    from urllib.parse import urlencode, urlsplit

    place = urlsplit(board.url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": board.url}
    connection.request("POST", "/login", urlencode({"token": "a wrong one"}), headers)
    wrong = connection.getresponse()
    assert wrong.status == 401
    assert "not the token" in wrong.read().decode()
    connection.request("POST", "/login", urlencode({"token": token}), headers)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 303
    connection.close()
    return str(answer.headers["set-cookie"])


def test_another_address_than_loopback_needs_a_token_and_tls(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--token-file"):
        DashboardOptions(folders=(tmp_path,), host="0.0.0.0").auth(8710)
    with pytest.raises(ConfigError, match="--tls-cert"):
        DashboardOptions(folders=(tmp_path,), host="0.0.0.0", token=TOKEN).auth(8710)


def test_hostile_names_of_runs_stay_names(tmp_path: Path) -> None:
    unpacked(tmp_path, "ring")
    name = '"><img src=x onerror=alert(1)> %2e%2e'
    (tmp_path / "ring").rename(tmp_path / name)
    with standing(tmp_path) as board:
        _, _, text = board.ask("/")
        assert "<img" not in text
        link = text.split('href="/runs/')[1].partition('"')[0]
        status, _, page = board.ask(f"/runs/{link}")
        assert status == 200
        assert "<img" not in page


def test_runs_of_one_name_in_several_folders_are_all_shown(tmp_path: Path) -> None:
    folders = [tmp_path / place for place in ("a/run", "b/run", "c/b/run")]
    for folder in folders:
        unpacked(folder.parent, "ring")
        (folder.parent / "ring").rename(folder)
    with standing(*folders) as board:
        _, _, text = board.ask("/")
        links = {piece.partition('"')[0] for piece in text.split('href="')[1:]}
        runs = {link for link in links if link.startswith("/runs/")}
        assert len(runs) == 3
        assert {board.ask(link)[0] for link in runs} == {200}


def test_a_replay_of_no_run_says_so(board: Standing) -> None:
    status, _, text = board.ask("/runs/none/matches/1.jsonl")
    assert status == 200
    assert json.loads(text)["kind"] == "problem"
    assert "no run 'none'" in json.loads(text)["words"]


def test_a_run_that_is_damaged_or_gone_does_not_hide_the_others(tmp_path: Path) -> None:
    unpacked(tmp_path, "ring", "arena")
    (tmp_path / "arena" / "run.json").write_text("{", encoding="utf-8")
    with standing(tmp_path) as board:
        _, _, text = board.ask("/")
        assert "cannot be read" in text
        assert board.ask("/runs/ring")[0] == 200
        assert board.ask("/runs/arena")[0] == 404
