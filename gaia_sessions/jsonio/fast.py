"""Reads and writes JSON without the import of ``json``, which costs as much as a bare start of Python.

Each function does exactly what ``json`` would do, or leaves the work to ``json``. ``strict`` decides what is refused.
``_json``, the C accelerator, is private: if it is missing or has changed, every text goes to ``json``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Scan = Callable[[str, int], tuple[object, int]]

_make_scanner: Callable[..., Scan] | None = None
_quote: Callable[[str], str] | None = None
try:
    import _json
except ImportError:  # not CPython
    pass
else:
    _make_scanner = getattr(_json, "make_scanner", None)
    _quote = getattr(_json, "encode_basestring", None)

WHITESPACE = " \t\n\r"

_INTERPRETER_ERRORS = (TypeError, AttributeError)
"""A later accelerator may raise these if it expects other arguments. ``TypeError`` also leaves a value to ``json``."""

# The accelerator raises these for a text that is not JSON, if ``json``, which has the proper error, is not imported.
_SCAN_ERRORS = (StopIteration, SystemError, ImportError, *_INTERPRETER_ERRORS)

NOT_PARSED = object()
"""The result if the accelerator cannot read a text."""


class Scanner:
    """Reads whole texts with the callables of ``json.JSONDecoder``, whose exceptions pass through."""

    strict = True
    object_hook = None
    array_hook = None
    """CPython 3.15 and later expect this attribute."""

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
        self._scan = self._new_scan()

    def _new_scan(self) -> Scan | None:
        try:
            return _make_scanner(self) if _make_scanner else None
        except Exception:  # noqa: BLE001  # a later interpreter may expect more attributes
            return None

    def read(self, text: str) -> object:
        """Returns the value of ``text``, or ``NOT_PARSED`` if the text is not JSON: only ``json`` can say why."""
        if self._scan is None:
            return NOT_PARSED
        try:
            value, end = self._scan(text, len(text) - len(text.lstrip(WHITESPACE)))
        except _SCAN_ERRORS:
            return NOT_PARSED
        except ValueError as error:
            if type(error).__module__ != "json.decoder":
                raise
            return NOT_PARSED
        return NOT_PARSED if text[end:].strip(WHITESPACE) else value


def try_dumps(value: object, indent: int | None, max_depth: int, integer_limit: int) -> str | None:
    """Returns the same as ``json.dumps(value, indent=indent, ensure_ascii=False)``, or None to leave it to ``json``."""
    # None for types that ``json`` would convert, for a depth over ``max_depth``, and for an integer that is not from
    # ``-integer_limit`` to ``integer_limit - 1``.
    if _quote is None:
        return None
    parts: list[str] = []
    encoder = _Encoder(parts.append, _quote, " " * (indent or 0), integer_limit)
    try:
        encoder.put(value, None if indent is None else "\n", max_depth)
    except (RecursionError, *_INTERPRETER_ERRORS):
        return None
    return "".join(parts)


class _Encoder:
    """Writes the parts of one text to ``out``."""

    __slots__ = ("indentation", "integer_limit", "names", "out", "quote")

    def __init__(
        self, out: Callable[[str], None], quote: Callable[[str], str], indentation: str, integer_limit: int
    ) -> None:
        self.out = out
        self.quote = quote
        self.indentation = indentation
        self.integer_limit = integer_limit
        self.names: dict[str, str] = {}

    def put(self, value: object, line_break: str | None, depth_left: int) -> None:
        """Writes ``value``.

        line_break: a line feed with the indentation of the next line; None to write everything on one line.
        depth_left: how many more containers may be inside one another.
        """
        value_type = type(value)
        if value_type is str:
            self.out(self.quote(value))  # type: ignore[arg-type]  # just checked
        elif value_type is dict:
            self.put_object(value, line_break, depth_left)  # type: ignore[arg-type]  # just checked
        elif value_type is list:
            self.put_array(value, line_break, depth_left)  # type: ignore[arg-type]  # just checked
        elif value_type is int:
            self.put_integer(value)  # type: ignore[arg-type]  # just checked
        elif value_type in _ENCODERS:
            self.out(_ENCODERS[value_type](value))
        else:
            raise TypeError

    def put_integer(self, value: int) -> None:
        if not -self.integer_limit <= value < self.integer_limit:
            raise TypeError
        self.out(int.__repr__(value))

    def put_object(self, members: dict[object, object], line_break: str | None, depth_left: int) -> None:
        if not depth_left:
            raise TypeError
        inner_break = None if line_break is None else line_break + self.indentation
        before, separator = ("{", ", ") if inner_break is None else (f"{{{inner_break}", f",{inner_break}")
        out, quote, names = self.out, self.quote, self.names
        for key, member in members.items():
            if type(key) is not str:
                raise TypeError
            name = names.get(key) or names.setdefault(key, f"{quote(key)}: ")
            if type(member) is str:  # most members
                out(f"{before}{name}{quote(member)}")
            else:
                out(before + name)
                self.put(member, inner_break, depth_left - 1)
            before = separator
        out("{}" if not members else "}" if line_break is None else f"{line_break}}}")

    def put_array(self, elements: list[object], line_break: str | None, depth_left: int) -> None:
        if not depth_left:
            raise TypeError
        inner_break = None if line_break is None else line_break + self.indentation
        before, separator = ("[", ", ") if inner_break is None else (f"[{inner_break}", f",{inner_break}")
        for element in elements:
            self.out(before)
            before = separator
            self.put(element, inner_break, depth_left - 1)
        self.out("[]" if not elements else "]" if line_break is None else f"{line_break}]")


def _encode_float(value: float) -> str:
    if value - value != 0.0:  # infinity or NaN
        raise TypeError
    return float.__repr__(value)


_ENCODERS: dict[type, Callable[..., str]] = {
    float: _encode_float,
    bool: lambda value: "true" if value else "false",
    type(None): lambda _: "null",
}
