"""Authentication: which requests the server accepts, by their headers and token.

Any web page that a person opens can reach a server on loopback. So a request from a page (it has an
`Origin`) must be listed, and a request that names another host (`Host`, after DNS rebinding) is
refused. The token is compared in constant time and is never part of a URL.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from understudy.core.errors import ConfigError
from understudy.telemetry.text import complain
from understudy.web.refusal import Refusal

SUBPROTOCOL = "understudy.1"
TOKEN_SUBPROTOCOL = "understudy.token."  # noqa: S105  the name of a place, not a secret
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_TOKEN = re.compile(r"[A-Za-z0-9._~-]{16,512}")
_BEARER = "bearer "
_READ_BY_OTHERS = stat.S_IRGRP | stat.S_IROTH
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")


@dataclass(frozen=True, kw_only=True)
class Auth:
    """The checks of one server; `make_auth` builds it from flags."""

    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()
    token: str | None = None
    behind_proxy: bool = False
    address_header: str | None = None
    """The header in which a trusted proxy writes the address of a client"""

    def refusal(self, headers: Mapping[str, str]) -> Refusal | None:
        """Why a request is refused by its headers; None: it is accepted."""
        host = host_name(headers.get("host", ""))
        if host not in self.hosts:
            return Refusal("bad_host", "this server does not answer to that Host (--allow-host)")
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self.origins:
            return Refusal("bad_origin", "pages of that Origin are not allowed (--allow-origin)")
        if "content-length" in headers and "transfer-encoding" in headers:
            # A proxy may use the other header, and read the body as further requests.
            words = "expected Content-Length or Transfer-Encoding, not both"
            return Refusal("bad_message", words, "Transfer-Encoding")
        return None

    def admits(self, token: str | None) -> bool:
        """Whether this token is right, or none is needed."""
        if self.token is None:
            return True
        return hmac.compare_digest(
            self.token.encode(), (token or "").encode("utf-8", "surrogatepass")
        )

    def admits_bearer(self, headers: Mapping[str, str]) -> bool:
        """The same for `Authorization: Bearer TOKEN`."""
        words = headers.get("authorization", "")
        return self.admits(words[len(_BEARER) :] if words.lower().startswith(_BEARER) else None)

    def subprotocol(self, offered: Sequence[str]) -> tuple[str | None, str | None]:
        """The chosen one of the offered subprotocols, and the token among them.

        A browser that offers any fails unless one is chosen; it should offer `understudy.1` beside
        the token, so that the token is not sent back.
        """
        tokens = [one for one in offered if one.startswith(TOKEN_SUBPROTOCOL)]
        token = tokens[0].removeprefix(TOKEN_SUBPROTOCOL) if tokens else None
        if SUBPROTOCOL in offered:
            return SUBPROTOCOL, token
        return (tokens[0] if tokens else None), token

    def address(self, scope: Scope) -> str | None:
        """The address that limits count a request under; None: not known.

        Behind a proxy every peer is the proxy. Only a header that was named explicitly is trusted
        to tell more, and only the last address in it: the proxy writes that one, and any client may
        have written the ones before. Where the header has no address, the proxy's own counts.
        """
        peer = scope.get("client")
        if self.address_header is None and self.behind_proxy:
            return None
        if self.address_header is not None:
            lines = Headers(scope=scope).getlist(self.address_header)
            told = network(lines[-1].rpartition(",")[2].strip()) if lines else None
            if told is not None:
                return told
        return None if peer is None else network(peer[0])


def make_auth(
    *,
    host: str,
    allow_hosts: Iterable[str],
    allow_origins: Iterable[str],
    token: str | None,
    behind_proxy: bool = False,
    address_header: str | None = None,
) -> Auth:
    """The checks of a server at this address. Raises `ConfigError` for wrong flags."""
    if address_header is not None and not behind_proxy:
        raise ConfigError(
            f"--address-header {address_header}: expected --behind-proxy with it; without a proxy "
            "in front, clients themselves write that header"
        )
    if address_header is not None and not _HEADER.fullmatch(address_header):
        raise ConfigError(
            f"--address-header {address_header}: expected the name of a header, such as X-Real-IP"
        )
    hosts = [*_LOOPBACK, host, *allow_hosts]
    return Auth(
        hosts=frozenset(host_name(one) for one in hosts),
        origins=frozenset(_origin(one) for one in allow_origins),
        token=token,
        behind_proxy=behind_proxy,
        address_header=address_header,
    )


def network(address: str) -> str | None:
    """The addresses that limits count as one client: an IPv4 address, or an IPv6 /64 network."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return None
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return f"{ipaddress.IPv6Address(int(ip) >> 64 << 64)}/64"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def check_exposure(*, host: str, token: bool, tls: bool, behind_proxy: bool) -> None:
    """A server that other machines can reach needs a token, and TLS or a proxy that has it."""
    if is_loopback(host) and not behind_proxy:
        return
    where = "--behind-proxy" if is_loopback(host) else f"--host {host}"
    if not token:
        raise ConfigError(
            f"{where}: others can reach this server, so it needs --token-file: a file with a "
            "secret of 16 characters or more"
        )
    if not (tls or behind_proxy):
        raise ConfigError(
            f"{where}: the token would cross the network in the clear; give --tls-cert and "
            "--tls-key, or --behind-proxy where a proxy in front of it speaks TLS"
        )


def read_token(path: Path) -> str:
    """The token of a file: 16 to 512 letters, digits and `._~-`."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"--token-file {path}: cannot be read ({why})") from error
    if not _TOKEN.fullmatch(token):
        raise ConfigError(
            f"--token-file {path}: expected 16 to 512 letters, digits and ._~- and nothing else"
        )
    if os.name == "posix" and path.stat().st_mode & _READ_BY_OTHERS:
        complain(f"--token-file {path}: other users of this machine can read it; chmod 600 {path}")
    return token


def host_name(value: str) -> str:
    """The name in a `Host` header, lower case, without its port: `[::1]:8765` is `::1`."""
    value = value.strip().lower()
    if value.startswith("["):
        return value[1:].partition("]")[0]
    return value if value.count(":") > 1 else value.partition(":")[0]


def _origin(value: str) -> str:
    if value == "null":  # the origin of a page from a file
        return value
    parts = urlsplit(value.lower())
    if not (parts.scheme and parts.netloc) or parts.path not in {"", "/"} or parts.query:
        raise ConfigError(
            f"--allow-origin {value}: expected scheme://host or scheme://host:port, "
            "such as https://game.example"
        )
    return f"{parts.scheme}://{parts.netloc}"
