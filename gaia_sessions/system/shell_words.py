"""The programs that a shell command starts, as far as its text shows them.

Owns the part of the POSIX shell grammar that this takes, and gives up at everything else: substitutions, redirections
to files, here-documents, subshells, background jobs. Pure. ``shlex`` knows no redirections, and importing it costs a
hook more than this whole module.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_COMMAND_LENGTH = 600
"""Characters. A longer command is a program of its own, and a hook has no time to parse it."""

EXPANSION = "\0"
"""Stands in a word for what only the shell can know."""

_ORDINARY = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+*?[]%@~^!"
_ORDINARY_IN_QUOTES = f"{_ORDINARY} \t\n'#|;&<>(){{}}"
"""Characters that stand for themselves, outside and inside of double quotes. Reading them in runs is fast."""

_DISCARDING_TARGETS = ("/dev/null", "&1", "&2")
_WORD_ENDS = " \t\n;|&<>"


def commands_in(text: str) -> Iterator[list[str] | None]:
    """Yields the words of each command in ``text``; None as the last item if the rest cannot be parsed.

    Redirections to ``/dev/null`` and from a file are left out; a variable or a brace becomes ``EXPANSION``.
    """
    if len(text) > MAX_COMMAND_LENGTH:
        yield None
        return
    try:
        yield from _Parser(text).read()
    except _NotUnderstoodError:
        yield None


class _NotUnderstoodError(Exception):
    pass


class _Parser:
    """Reads one text, character by character or in runs of ordinary ones."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.word: str | None = None
        self.names_source = False  # the word names the file that input is redirected from
        self.words: list[str] = []
        self.commands: list[list[str]] = []

    def read(self) -> Iterator[list[str]]:
        """Yields each command as soon as it ends, so that a caller can stop before the rest is parsed."""
        self.add_run(_ORDINARY)
        while char := self.next():
            special = _SPECIAL.get(char)
            if special:
                special(self)
            else:
                self.add(char)
            yield from self.ended()
            self.add_run(_ORDINARY)
        self.end_command()
        yield from self.ended()

    def ended(self) -> list[list[str]]:
        """The commands that ended since the last call."""
        ended, self.commands = self.commands, []
        return ended

    def add_run(self, among: str) -> None:
        """Adds the run of characters ``among`` that stands here."""
        rest = self.text[self.at :]
        length = len(rest) - len(rest.lstrip(among))
        if length:
            self.at += length
            self.add(rest[:length])

    def next(self) -> str:
        """The next character, empty at the end."""
        self.at += 1
        return self.text[self.at - 1 : self.at]

    def next_is_one_of(self, among: str) -> bool:
        """Whether the next character is one of ``among``."""
        return self.text[self.at : self.at + 1] in tuple(among)

    def add(self, text: str) -> None:
        self.word = (self.word or "") + text

    def end_word(self) -> None:
        if self.word is None:
            return
        if not self.names_source:
            self.words.append(self.word)
        self.word, self.names_source = None, False

    def end_command(self) -> None:
        self.end_word()
        if self.names_source:
            raise _NotUnderstoodError
        if self.words:
            self.commands.append(self.words)
        self.words = []

    def pipe(self) -> None:
        if self.next_is_one_of("|&"):
            self.next()
        self.end_command()

    def ampersand(self) -> None:
        """``&&`` or ``&>``; a single ``&`` starts a background job, which is not understood."""
        char = self.next()
        if char == "&":
            self.end_command()
        elif char == ">":
            self.end_word()
            self.redirect_output()
        else:
            raise _NotUnderstoodError

    def redirect_output(self) -> None:
        self.end_descriptor()
        rest = self.text[self.at :].removeprefix(">").lstrip(" \t")
        nowhere = next((target for target in _DISCARDING_TARGETS if rest.startswith(target)), None)
        if nowhere is None or rest[len(nowhere) : len(nowhere) + 1] not in _WORD_ENDS:
            raise _NotUnderstoodError
        self.at = len(self.text) - len(rest) + len(nowhere)

    def redirect_input(self) -> None:
        self.end_descriptor()
        if self.names_source or self.next_is_one_of("<>&("):
            raise _NotUnderstoodError
        self.names_source = True

    def end_descriptor(self) -> None:
        """A number right before a redirection is a file descriptor and not a word."""
        if self.word and self.word.isdecimal():
            self.word = None
        self.end_word()

    def single_quotes(self) -> None:
        inside, closed, _ = self.text[self.at :].partition("'")
        if not closed:
            raise _NotUnderstoodError
        self.at += len(inside) + 1
        self.add(inside)

    def double_quotes(self) -> None:
        self.add("")
        self.add_run(_ORDINARY_IN_QUOTES)
        while (char := self.next()) != '"':
            if char in {"", "`"}:
                raise _NotUnderstoodError
            if char == "$":
                self.variable()
            elif char == "\\" and self.next_is_one_of('$`"\\\n'):
                self.escape()
            else:
                self.add(char)
            self.add_run(_ORDINARY_IN_QUOTES)

    def variable(self) -> None:
        if self.next_is_one_of("({'\""):
            raise _NotUnderstoodError
        self.add(EXPANSION)

    def brace(self) -> None:
        """``{}`` stands for itself."""
        self.add("{" if self.next_is_one_of("}") else EXPANSION)

    def escape(self) -> None:
        char = self.next()
        if not char:
            raise _NotUnderstoodError
        if char != "\n":
            self.add(char)

    def comment(self) -> None:
        if self.word is not None:
            self.add("#")
        else:
            self.at += len(self.text[self.at :].partition("\n")[0])

    def give_up(self) -> None:
        raise _NotUnderstoodError


_SPECIAL: dict[str, Callable[[_Parser], None]] = {
    " ": _Parser.end_word,
    "\t": _Parser.end_word,
    "\n": _Parser.end_command,
    ";": _Parser.end_command,
    "|": _Parser.pipe,
    "&": _Parser.ampersand,
    ">": _Parser.redirect_output,
    "<": _Parser.redirect_input,
    "'": _Parser.single_quotes,
    '"': _Parser.double_quotes,
    "$": _Parser.variable,
    "{": _Parser.brace,
    "\\": _Parser.escape,
    "#": _Parser.comment,
    "`": _Parser.give_up,
    "(": _Parser.give_up,
    ")": _Parser.give_up,
}
