"""Who may come in: loopback names, listed pages, the right token; and what an address needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Scope

from understudy.core.errors import ConfigError
from understudy.web.auth import (
    SUBPROTOCOL,
    Auth,
    check_exposure,
    host_name,
    is_loopback,
    make_auth,
    read_token,
)

TOKEN = "correct-horse-battery"


def at_home(**options: object) -> Auth:
    chosen: dict[str, object] = {"allow_hosts": (), "allow_origins": (), "token": None, **options}
    return make_auth(host="127.0.0.1", **chosen)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("host", "origin", "code"),
    [
        ("127.0.0.1:8765", None, None),
        ("localhost", None, None),
        ("LOCALHOST:1", None, None),
        ("[::1]:8765", None, None),
        ("evil.example:8765", None, "bad_host"),  # a name that was rebound to loopback
        ("127.0.0.1.evil.example", None, "bad_host"),
        ("", None, "bad_host"),
        ("localhost", "https://game.example", None),
        ("localhost", "HTTPS://GAME.example", None),
        ("localhost", "http://game.example", "bad_origin"),
        ("localhost", "https://game.example.evil", "bad_origin"),
        ("localhost", "http://localhost:8765", "bad_origin"),  # another page of this machine
        ("localhost", "null", "bad_origin"),
        ("localhost", "", "bad_origin"),
    ],
)
def test_hosts_and_origins(host: str, origin: str | None, code: str | None) -> None:
    headers = {"host": host} | ({} if origin is None else {"origin": origin})
    refusal = at_home(allow_origins=["https://game.example/"]).refusal(headers)
    assert (refusal.code if refusal else None) == code


def test_another_name_of_this_server_can_be_allowed() -> None:
    one = at_home(allow_hosts=["Play.Example"])
    assert one.refusal({"host": "play.example:443"}) is None


def test_only_the_token_is_the_token() -> None:
    one = at_home(token=TOKEN)
    assert one.admits(TOKEN)
    for wrong in (None, "", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "\ud800", "ключ"):
        assert not one.admits(wrong)
    assert at_home().admits(None) and at_home().admits("anything")


def test_a_bearer_header_is_a_token() -> None:
    one = at_home(token=TOKEN)
    assert one.admits_bearer({"authorization": f"Bearer {TOKEN}"})
    assert one.admits_bearer({"authorization": f"bearer {TOKEN}"})
    for wrong in ("", TOKEN, f"Basic {TOKEN}", "Bearer wrong-wrong-wrong"):
        assert not one.admits_bearer({"authorization": wrong})
    assert not one.admits_bearer({})


def test_a_token_as_subprotocol_does_not_come_back_where_another_was_offered() -> None:
    one, name = at_home(token=TOKEN), f"understudy.token.{TOKEN}"
    assert one.subprotocol([SUBPROTOCOL, name]) == (SUBPROTOCOL, TOKEN)
    assert one.subprotocol([name]) == (name, TOKEN)  # a browser gives up if none is chosen
    assert one.subprotocol(["soap"]) == (None, None)
    assert one.subprotocol([]) == (None, None)


@pytest.mark.parametrize(
    "origin", ["*", "game.example", "https://game.example/page", "https://a.b?c", ""]
)
def test_an_origin_that_no_page_could_have_is_an_error(origin: str) -> None:
    with pytest.raises(ConfigError, match="--allow-origin"):
        at_home(allow_origins=[origin])


def scope(peer: str | None, *forwarded: str) -> Scope:
    lines = [(b"x-forwarded-for", one.encode()) for one in forwarded]
    return {
        "type": "http",
        "client": None if peer is None else (peer, 50_000),
        "headers": [(b"host", b"localhost"), *lines],
    }


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),  # one household has all of these
        ("2001:db8:1:2::7", "2001:db8:1:2::/64"),
        ("testclient", None),
        (None, None),
    ],
)
def test_an_address_is_the_peers_whatever_headers_say(
    peer: str | None, address: str | None
) -> None:
    assert at_home().address(scope(peer, "6.6.6.6")) == address


def test_behind_a_proxy_only_a_header_that_was_named_tells_an_address() -> None:
    unnamed = at_home(behind_proxy=True)
    assert unnamed.address(scope("10.0.0.1", "7.7.7.7")) is None
    named = at_home(behind_proxy=True, address_header="X-Forwarded-For")
    assert named.address(scope("10.0.0.1", "6.6.6.6, 7.7.7.7")) == "7.7.7.7"  # the first is a claim
    assert named.address(scope("10.0.0.1", "6.6.6.6", "7.7.7.7")) == "7.7.7.7"
    assert named.address(scope("10.0.0.1", "7.7.7.7, nonsense")) == "10.0.0.1"
    assert named.address(scope("10.0.0.1")) == "10.0.0.1"


@pytest.mark.parametrize(
    ("proxy", "header"), [(False, "X-Forwarded-For"), (True, "X Real"), (True, "")]
)
def test_a_header_that_anybody_may_write_is_not_trusted(proxy: bool, header: str) -> None:
    with pytest.raises(ConfigError, match="--address-header"):
        at_home(behind_proxy=proxy, address_header=header)


@pytest.mark.skipif(os.name != "posix", reason="other systems have no such mode")
def test_a_token_file_that_others_can_read_draws_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "token"
    path.write_text(TOKEN, encoding="utf-8")
    path.chmod(0o600)
    assert (read_token(path), capsys.readouterr().err) == (TOKEN, "")
    for mode in (0o640, 0o604):
        path.chmod(mode)
        assert read_token(path) == TOKEN
        said = capsys.readouterr().err
        assert f"chmod 600 {path}" in said and said.count("\n") == 1
        assert TOKEN not in said


@pytest.mark.parametrize(
    ("host", "token", "tls", "proxy", "missing"),
    [
        ("127.0.0.1", False, False, False, None),
        ("localhost", False, False, False, None),
        ("::1", False, False, False, None),
        ("0.0.0.0", False, False, False, "--token-file"),
        ("192.168.1.5", False, True, False, "--token-file"),
        ("game.example", True, False, False, "--tls-cert"),
        ("0.0.0.0", True, True, False, None),
        ("0.0.0.0", True, False, True, None),
        ("127.0.0.1", False, False, True, "--token-file"),  # the proxy brings others here
        ("127.0.0.1", True, False, True, None),
    ],
)
def test_who_can_be_reached_from_elsewhere_asks_for_a_token_in_secret(
    host: str, token: bool, tls: bool, proxy: bool, missing: str | None
) -> None:
    if missing is None:
        check_exposure(host=host, token=token, tls=tls, behind_proxy=proxy)
        return
    with pytest.raises(ConfigError, match=missing):
        check_exposure(host=host, token=token, tls=tls, behind_proxy=proxy)


def test_a_token_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n", encoding="utf-8")
    assert read_token(path) == TOKEN
    for wrong in ("", "short", "sixteen chars and spaces", "x" * 513, "sixteen,commas,in,it"):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(ConfigError, match="--token-file") as error:
            read_token(path)
        assert not wrong or wrong not in str(error.value)  # a mistyped secret is a secret too
    path.write_bytes(b"\xff" * 20)
    with pytest.raises(ConfigError, match="not text"):
        read_token(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_token(tmp_path / "nowhere")


@given(st.text(max_size=40))
def test_any_host_header_is_read(value: str) -> None:
    assert host_name(value) == host_name(value).lower()
    assert not is_loopback("0.0.0.0")
