"""JSON by the interpreter's own scanner, without the package around it: ``import json`` costs what a bare start does.

Owns two short cuts, each of which either does exactly what ``json`` would do or leaves it to ``json``. Decides
nothing: what is refused, and in which words, is ``strictjson``. The parts are those that ``json`` itself is made
of (``_json``), which promise nothing to anybody but ``json``: where they are missing, or want what they are not given,
every text takes the long way.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Scan = Callable[[str, int], tuple[object, int]]

_make_scanner: Callable[..., Scan] | None = None
_quoted: Callable[[str], str] | None = None
try:
    import _json
except ImportError:  # not CPython
    pass
else:
    _make_scanner = getattr(_json, "make_scanner", None)
    _quoted = getattr(_json, "encode_basestring", None)

BLANKS = " \t\n\r"

_REFUSED = (TypeError, AttributeError)
"""How an interpreter to come may say that it wants more than it is given."""

# No JSON, whose own error is in the package that was not loaded; or refused.
_NOT_READ = (StopIteration, SystemError, ImportError, *_REFUSED)

UNKNOWN = object()
"""The answer where a short cut leads nowhere."""


class Scanner:
    """Reads whole texts. The callables are those of ``json.JSONDecoder``, and what they raise passes through."""

    strict = True
    object_hook = None
    array_hook = None
    """Asked for from CPython 3.15 on."""

    def __init__(
        self,
        object_pairs_hook: Callable[..., object],
        parse_int: Callable[[str], int],
        parse_float: Callable[[str], float],
        parse_constant: Callable[[str], object],
    ) -> None:
        self.object_pairs_hook = object_pairs_hook
        self.parse_int = parse_int
        self.parse_float = parse_float
        self.parse_constant = parse_constant
        self._scan = self._made()

    def _made(self) -> Scan | None:
        try:
            return _make_scanner(self) if _make_scanner else None
        except Exception:  # noqa: BLE001  # whatever an interpreter to come wants of us that we do not have
            return None

    def read(self, text: str) -> object:
        """The value of ``text``, or ``UNKNOWN`` if it is no JSON, which only ``json`` can explain."""
        if self._scan is None:
            return UNKNOWN
        try:
            value, end = self._scan(text, len(text) - len(text.lstrip(BLANKS)))
        except _NOT_READ:
            return UNKNOWN
        except ValueError as error:
            if type(error).__module__ != "json.decoder":
                raise
            return UNKNOWN
        return UNKNOWN if text[end:].strip(BLANKS) else value


def written(value: object, indent: int | None, deepest: int, largest: int) -> str | None:
    """What ``json.dumps(value, indent=indent, ensure_ascii=False)`` makes; None for what it would have to convert.

    None also for what is nested deeper than ``deepest``, and for a whole number that is not from ``-largest`` to
    ``largest - 1``.
    """
    if _quoted is None:
        return None
    parts: list[str] = []
    writing = _Writing(parts.append, _quoted, " " * (indent or 0), largest)
    try:
        writing.put(value, None if indent is None else "\n", deepest)
    except (_UnusualError, RecursionError, *_REFUSED):
        return None
    return "".join(parts)


class _UnusualError(Exception):
    pass


class _Writing:
    """One text on its way to ``out``. A line break has the indentation of its line behind it; None: all on one line.

    left: so many containers may be inside one another from here on.
    """

    __slots__ = ("largest", "names", "out", "quoted", "step")

    def __init__(self, out: Callable[[str], None], quoted: Callable[[str], str], step: str, largest: int) -> None:
        self.out = out
        self.quoted = quoted
        self.step = step
        self.largest = largest
        self.names: dict[str, str] = {}

    def put(self, value: object, line: str | None, left: int) -> None:
        kind = type(value)
        if kind is str:
            self.out(self.quoted(value))  # type: ignore[arg-type]  # just checked
        elif kind is dict:
            self.put_object(value, line, left)  # type: ignore[arg-type]  # just checked
        elif kind is list:
            self.put_array(value, line, left)  # type: ignore[arg-type]  # just checked
        elif kind is int:
            self.put_integer(value)  # type: ignore[arg-type]  # just checked
        elif kind in _SIMPLE:
            self.out(_SIMPLE[kind](value))
        else:
            raise _UnusualError

    def put_integer(self, value: int) -> None:
        if not -self.largest <= value < self.largest:
            raise _UnusualError
        self.out(int.__repr__(value))

    def put_object(self, members: dict[object, object], line: str | None, left: int) -> None:
        if not left:
            raise _UnusualError
        inner = None if line is None else line + self.step
        before, between = ("{", ", ") if inner is None else (f"{{{inner}", f",{inner}")
        out, quoted, names = self.out, self.quoted, self.names
        for key, member in members.items():
            if type(key) is not str:
                raise _UnusualError
            name = names.get(key) or names.setdefault(key, f"{quoted(key)}: ")
            if type(member) is str:  # most are
                out(f"{before}{name}{quoted(member)}")
            else:
                out(before + name)
                self.put(member, inner, left - 1)
            before = between
        out("{}" if not members else "}" if line is None else f"{line}}}")

    def put_array(self, elements: list[object], line: str | None, left: int) -> None:
        if not left:
            raise _UnusualError
        inner = None if line is None else line + self.step
        before, between = ("[", ", ") if inner is None else (f"[{inner}", f",{inner}")
        for element in elements:
            self.out(before)
            before = between
            self.put(element, inner, left - 1)
        self.out("[]" if not elements else "]" if line is None else f"{line}]")


def _number(value: float) -> str:
    if value - value != 0.0:  # infinite, or none at all
        raise _UnusualError
    return float.__repr__(value)


_SIMPLE: dict[type, Callable[..., str]] = {
    float: _number,
    bool: lambda value: "true" if value else "false",
    type(None): lambda _: "null",
}
