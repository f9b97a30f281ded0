"""The URL of a server as a root: which URLs are accepted. A password in a URL would reach the agents that we start."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

from gaia_sessions.errors import BadSetting

SCHEMES = ("postgresql", "postgres")
_SECRETS = frozenset(["password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret"])
_USE_FILE = "write it in a passfile (~/.pgpass), or in a service file, or set PGPASSWORD"


def checked(origin: str, url: str) -> str:
    """Returns ``url``; raises ``BadSetting``, without the text of the URL, if no server can be meant."""
    try:
        parts = urlsplit(url)
        names = {name.strip().lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    except ValueError:
        raise BadSetting(origin, "is no valid URL", "write postgresql://HOST/DATABASE") from None
    if parts.scheme not in SCHEMES:
        raise BadSetting(
            origin, "is a URL, but not of PostgreSQL", "write postgresql://HOST/DATABASE, or name a folder"
        )
    user, found, _ = parts.netloc.rpartition("@")
    if (found and ":" in unquote(user)) or names & _SECRETS:
        raise BadSetting(origin, "has a password", f"take the password out of the URL; {_USE_FILE}")
    if not url.isprintable() or any(character.isspace() for character in url):
        raise BadSetting(origin, "has a blank or an invisible character", "write it as %20")
    return url
