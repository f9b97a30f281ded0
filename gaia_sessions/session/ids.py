"""Which strings may be ids, how new ids are made, and how text from outside becomes a file name.

Owns the rule for session ids, which is checked before any path is built; the random digits and digests of which ids and
names are made; the line that names a session to be resumed; and the encoding of host ids, which are never file names
themselves.
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
"""How many random digits end a generated id."""
SHORTEST_ABBREVIATION = 4
"""The fewest characters of an id that commands accept in place of the whole."""

MARKER_OPENING = "[gaia-sessions:"
"""How every line begins by which agents say something to the hooks."""

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
"""A prime number of 32 bits, but none close to 2**32: then texts that differ in two digits often have one remainder."""

_MAX_NAME_LENGTH = 200
_SLUG_LENGTH = 100


def run_command(agent_id: str, *, ended: bool = False) -> str:
    """What a person types for a command to go on with a session; of one that has ``ended``, in a new session."""
    return f"gaia-sessions run {'--continues ' if ended else ''}{agent_id} -- COMMAND"


def send_command(agent_id: str, *, ended: bool = False) -> str:
    """What a person types to go on with a conversation; with one that has ``ended``, at first."""
    return f"gaia-sessions create --continues {agent_id}" if ended else f"gaia-sessions send {agent_id} TEXT -- COMMAND"


def resume_line(agent_id: str) -> str:
    """The line of a delegation that requests to resume the session ``agent_id``; ``hosts.marker`` reads it."""
    return f"{MARKER_OPENING} {RESUME} {agent_id}]"


def check_agent_id(value: object) -> str:
    """Returns ``value`` if it may name a session, else raises ``InvalidId`` saying which rule it breaks.

    The rule: 1 to 128 of ``A-Z a-z 0-9 . _ -``, first a letter or digit, no trailing dot, no ``..``,
    no Windows device name.
    """
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
    """Whether ``check_agent_id`` would accept ``value``."""
    return isinstance(value, str) and _broken_rule(value) is None


def new_agent_id(now: datetime, random_bytes: RandomBytes) -> str:
    """An id of the generated form, ``agent-{UTC %Y%m%d-%H%M%S}-{8 hex}``, from the time and random bytes."""
    return f"agent-{compact_timestamp(now)}-{random_hex(RANDOM_DIGITS, random_bytes)}"


def is_generated_id(agent_id: str) -> bool:
    """Whether ``agent_id`` has the whole generated form, in letters of either case."""
    parts = agent_id.casefold().split("-")
    if [len(part) for part in parts] != [len("agent"), *_TIMESTAMP_LENGTHS, RANDOM_DIGITS] or parts[0] != "agent":
        return False
    return _DIGITS.issuperset(parts[1] + parts[2]) and is_hex(parts[3], RANDOM_DIGITS)


def random_hex(length: int, random_bytes: RandomBytes) -> str:
    """So many random hexadecimal digits, an even number."""
    return random_bytes(length // 2).hex()


def is_hex(text: str, length: int) -> bool:
    """Whether ``text`` is exactly so many hexadecimal digits, in lower case as ``random_hex`` makes them."""
    return len(text) == length and _HEX.issuperset(text)


def quick_digest(text: str) -> str:
    """Eight hexadecimal digits made of ``text``. A cryptographic digest would cost a hook an import."""
    return f"{int.from_bytes(text.encode('utf-8', 'surrogatepass')) % _DIGEST_MODULUS:08x}"


def bytes_made_of(text: str) -> RandomBytes:
    """In place of random bytes: the same ones for the same ``text``, and others at each call. Makes four at a time."""
    numbers = count()
    return lambda _: bytes.fromhex(quick_digest(f"{next(numbers)} {text}"))


def short_digest(data: bytes) -> str:
    """The first 32 digits of the SHA-256 digest of ``data``, enough to tell any two contents apart."""
    from hashlib import sha256  # loads OpenSSL, a tenth of a hook's budget, for the few names that need it

    return sha256(data).hexdigest()[:_SHORT_DIGEST_LENGTH]


def fold_id(agent_id: str) -> str:
    """The name that ids share if some file system treats them as one."""
    return agent_id.casefold()


def encode_key(*parts: str) -> str:
    """A file name for exactly these ``parts``, safe also where case is ignored; different parts give different names.

    A short name is escaped reversibly; a long one keeps a readable beginning and ends in a SHA-256 digest.
    """
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
    """What stands for each character, by its number: made when it is asked for the first time."""

    def __missing__(self, number: int) -> str:
        char = chr(number)
        encoded = char.encode("utf-8", "surrogatepass")
        self[number] = escaped = char if char in _UNESCAPED else "%" + encoded.hex("%")
        return escaped


_ESCAPES = _Escapes()


def abbreviations(agent_id: str, length: int) -> set[str]:
    """What may be typed in place of ``agent_id``: its beginning, its end, or the beginning of its random digits."""
    abbreviated = {agent_id[:length], agent_id[-length:]}
    return abbreviated | {agent_id[-RANDOM_DIGITS:][:length]} if is_generated_id(agent_id) else abbreviated
