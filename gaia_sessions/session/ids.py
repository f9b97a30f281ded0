"""Session IDs: which strings can be an ID, how new IDs are made, and how IDs of hosts become file names.

An ID is checked before a path is made from it. An ID of a host is encoded before it becomes a file name.
"""

from __future__ import annotations

from itertools import count

from gaia_sessions import errors

from .clock import compact_timestamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import TypeGuard

    RandomBytes = Callable[[int], bytes]
    """Returns so many random bytes."""

MAX_ID_LENGTH = 128
RANDOM_DIGITS = 8
"""How many random digits end a generated ID."""
SHORTEST_ABBREVIATION = 4
"""The fewest characters of an ID that commands accept instead of the whole ID."""

MARKER_OPENING = "[gaia-sessions:"
"""The beginning of every line with which agents tell the hooks something."""

RESUME = "resume"

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ALPHANUMERIC = frozenset(_LETTERS + _LETTERS.upper() + "0123456789")
_ALLOWED = _ALPHANUMERIC | frozenset("._-")
_UNESCAPED = frozenset(_LETTERS + "0123456789_-")
_DIGITS = frozenset("0123456789")
_HEX = frozenset("0123456789abcdef")
_TIMESTAMP_LENGTHS = (8, 6)
_SHORT_DIGEST_LENGTH = 32

# Windows opens these devices whatever the extension; records are copied between systems, so all systems refuse them.
_WINDOWS_DEVICES = frozenset(
    ["con", "prn", "aux", "nul"] + [port + digit for port in ("com", "lpt") for digit in "0123456789"]
)

_DIGEST_MODULUS = 3_999_999_979
"""A 32-bit prime that is not close to 2**32: with a close prime, texts that differ in two digits often collide."""

_MAX_NAME_LENGTH = 200
_SLUG_LENGTH = 100


def run_command(agent_id: str, *, ended: bool = False) -> str:
    """Returns what a person types to resume a session with a command, or to continue one that has ``ended``."""
    return f"gaia-sessions run {'--continues ' if ended else ''}{agent_id} -- COMMAND"


def send_command(agent_id: str, *, ended: bool = False) -> str:
    """Returns what a person types to send to a session, or to continue one that has ``ended``."""
    return f"gaia-sessions create --continues {agent_id}" if ended else f"gaia-sessions send {agent_id} TEXT -- COMMAND"


def resume_line(agent_id: str) -> str:
    """Returns the line with which a delegation resumes a session; ``hosts.marker`` reads it."""
    return f"{MARKER_OPENING} {RESUME} {agent_id}]"


def check_agent_id(value: object) -> str:
    """Returns ``value`` if it can be the ID of a session, or raises ``InvalidId`` with the rule that it breaks."""
    if not isinstance(value, str):
        raise errors.InvalidId(value, "not a string")
    problem = _broken_rule(value)
    if problem:
        raise errors.InvalidId(value, problem)
    return value


def _broken_rule(value: str) -> str | None:
    if not value:
        return "empty"
    if len(value) > MAX_ID_LENGTH:
        return f"longer than {MAX_ID_LENGTH} characters"
    if not _ALLOWED.issuperset(value):
        return "has a character other than letters, digits, . _ -"
    if value[0] not in _ALPHANUMERIC:
        return "does not begin with a letter or digit"
    if ".." in value or value[-1] == ".":
        return "has two dots in a row or one at the end"
    return "is a device name on Windows" if value.split(".", 1)[0].casefold() in _WINDOWS_DEVICES else None


def is_agent_id(value: object) -> TypeGuard[str]:
    """Whether ``check_agent_id`` accepts ``value``."""
    return isinstance(value, str) and _broken_rule(value) is None


def new_agent_id(now: datetime, random_bytes: RandomBytes) -> str:
    """Makes an ID of the generated form: ``agent-{UTC %Y%m%d-%H%M%S}-{8 hex}``."""
    return f"agent-{compact_timestamp(now)}-{random_hex(RANDOM_DIGITS, random_bytes)}"


def is_generated_id(agent_id: str) -> bool:
    """Whether ``agent_id`` has the generated form, in letters of either case."""
    parts = agent_id.casefold().split("-")
    if [len(part) for part in parts] != [len("agent"), *_TIMESTAMP_LENGTHS, RANDOM_DIGITS] or parts[0] != "agent":
        return False
    return _DIGITS.issuperset(parts[1] + parts[2]) and is_hex(parts[3], RANDOM_DIGITS)


def random_hex(length: int, random_bytes: RandomBytes) -> str:
    """Returns ``length`` random hexadecimal digits, an even number."""
    return random_bytes(length // 2).hex()


def is_hex(text: str, length: int) -> bool:
    """Whether ``text`` is exactly so many lower-case hexadecimal digits."""
    return len(text) == length and _HEX.issuperset(text)


def quick_digest(text: str) -> str:
    """Returns eight hexadecimal digits made of ``text``; a cryptographic digest costs a hook an import."""
    return f"{int.from_bytes(text.encode('utf-8', 'surrogatepass')) % _DIGEST_MODULUS:08x}"


def bytes_made_of(text: str) -> RandomBytes:
    """Returns a function that makes four bytes from ``text``, not random ones, and others at each call."""
    numbers = count()
    return lambda _: bytes.fromhex(quick_digest(f"{next(numbers)} {text}"))


def short_digest(data: bytes) -> str:
    """Returns 32 digits of the SHA-256 digest of ``data``, enough to tell any two contents apart."""
    from hashlib import sha256  # loads OpenSSL, a tenth of a hook's budget, for the few names that need it

    return sha256(data).hexdigest()[:_SHORT_DIGEST_LENGTH]


def fold_id(agent_id: str) -> str:
    """Returns the lower-case name: IDs with the same name are one folder in a file system that ignores case."""
    return agent_id.casefold()


def encode_key(*parts: str) -> str:
    """Returns a file name for these ``parts``, which differs for other parts even if case is ignored."""
    name = ".".join(_escape(part) for part in parts)
    if len(name) <= _MAX_NAME_LENGTH:
        return name
    from hashlib import sha256  # loads OpenSSL, a tenth of a hook's budget, for the rare long key

    return name[:_SLUG_LENGTH] + "+" + sha256(name.encode()).hexdigest()


def _escape(part: str) -> str:
    if _UNESCAPED.issuperset(part):
        return part or "%"
    return part.translate(_ESCAPES)


class _Escapes(dict[int, str]):
    """The escape of each character by its number, made at its first use."""

    def __missing__(self, number: int) -> str:
        char = chr(number)
        encoded = char.encode("utf-8", "surrogatepass")
        self[number] = escaped = char if char in _UNESCAPED else "%" + encoded.hex("%")
        return escaped


_ESCAPES = _Escapes()


def abbreviations(agent_id: str, length: int) -> set[str]:
    """Returns what a user can type instead of ``agent_id``: its beginning, its end, or its random digits."""
    abbreviated = {agent_id[:length], agent_id[-length:]}
    return abbreviated | {agent_id[-RANDOM_DIGITS:][:length]} if is_generated_id(agent_id) else abbreviated
