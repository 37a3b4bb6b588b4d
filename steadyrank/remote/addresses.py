"""URLs and keys: what may be called, what messages may show, and where a key comes from."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from steadyrank.errors import ConfigError

KEY_VARIABLE = "STEADYRANK_API_KEY"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def check_url(url: str) -> None:
    """Whether calls can go there; a name and password inside a URL are refused, since URLs are printed."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"URL {shown(url)!r} cannot be called; give http://host:port/path or https://host/path")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"URL {shown(url)!r} holds a name or password; put a key into the environment variable {KEY_VARIABLE} instead")


def shown(url: str) -> str:
    """The URL as messages may show it: without name, password, query and fragment."""
    head, mark, rest = str(url).partition("://")
    path = (rest if mark else head).split("?")[0].split("#")[0]
    host, slash, tail = path.partition("/")
    return (head + mark if mark else "") + host.rpartition("@")[2] + slash + tail


def key_of(variable: str | None) -> str | None:
    """The key in this environment variable; a variable that was named and is not set is an error."""
    if variable is None:
        return None
    value = os.environ.get(variable, "").strip()
    if not value and variable != KEY_VARIABLE:
        raise ConfigError(f"environment variable {variable} holds no key; set it, or leave api_key_env out")
    if not all("!" <= character <= "~" for character in value):
        raise ConfigError(f"the key in environment variable {variable} holds white space or characters that no header can carry")
    return value or None


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine."""
    return urlsplit(url).hostname in _LOOPBACK


def short(text: str, size: int = 200) -> str:
    """One printable line of at most `size` characters."""
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return line if len(line) <= size else line[: size - 3] + "..."
