"""The URL of a server as a root: which URLs are accepted. A password in a URL would reach the agents that we start."""

from __future__ import annotations

from urllib.parse import unquote

from gaia_sessions.errors import BadSetting

SCHEMES = ("postgresql", "postgres")
SECRETS = frozenset(["password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret"])
"""The options that are secrets."""

_USE_FILE = "write it in a passfile (~/.pgpass), or in a service file, or set PGPASSWORD"


def checked(origin: str, url: str) -> str:
    """Returns ``url``; raises ``BadSetting``, without the text of the URL, if no server can be meant."""
    scheme, _, rest = url.partition("://")
    if scheme not in SCHEMES:
        raise BadSetting(
            origin, "is a URL, but not of PostgreSQL", "write postgresql://HOST/DATABASE, or name a folder"
        )
    # As the driver reads it: a user and a password can have ? and #, and nothing ends the options.
    user, _, place = rest.partition("@") if "@" in rest.partition("/")[0] else ("", "", rest)
    place, _, options = place.partition("?")
    names = {unquote(option.partition("=")[0]).strip().lower() for option in options.split("&")}
    if ":" in unquote(user) or ("@" in place and ":" in place) or names & SECRETS:
        raise BadSetting(origin, "has a password", f"take the password out of the URL; {_USE_FILE}")
    if not url.isprintable() or any(character.isspace() for character in url):
        raise BadSetting(origin, "has a blank or an invisible character", "write it as %20")
    return url
