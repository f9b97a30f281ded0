"""Whether a shell command only reads: the table of programs that change nothing.

Owns that table, and which options and operands make a program in it do more than read. A command that is not in it, or
not understood, counts as a change. This is evidence of the phase of work and no protection: it can be deceived. Pure.

Why it is kept, measured on 229 captures (253 sessions, 191 tool events, 79 of them ended commands): if a command said
nothing, 4 sessions would not be seen executing, none of them at the end. If every command counted as a change, 60
sessions would wrongly be executing, 29 of them to the end, where work that paused could not be resumed.
"""

from __future__ import annotations

from gaia_sessions.system.shell_words import EXPANSION, commands_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    ArgumentsCheck = Callable[[list[str]], bool]


def is_read_only(command: str) -> bool:
    """Whether every program that ``command`` starts is known to change nothing, called as it is."""
    return all(words is not None and _is_read_only_command(words) for words in commands_in(command))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_READ_ONLY_PROGRAMS = _words("""
    : arch basename cal cat cd cksum cmp comm cut df diff dirname du echo egrep exit expr false fgrep fold free
    getent grep groups head hexdump id join jq ls lsblk lscpu md5sum nl nproc od paste pgrep printenv ps
    pwd readlink realpath rev seq set sha1sum sha224sum sha256sum sha384sum sha512sum shasum sleep stat strings sum
    tac tail tr true tty type uname uptime wait wc whereis which who whoami
""")
"""Programs that only read, whatever their arguments."""

_PROGRAM_FOLDERS = ("", "/bin", "/usr/bin", "/usr/local/bin")
_OWN_PROGRAM = "gaia-sessions"
_OWN_REPORT_COMMANDS = "create events get help list revive schema should-resume show skill todo update usage version"
"""A report of the agent changes nothing that it works on; every other subcommand may change files."""


def _is_read_only_command(words: list[str]) -> bool:
    words = words[1:] if words[0] == "!" else words
    if not words:
        return True
    program, arguments = _program_name(words[0]), words[1:]
    if program in _READ_ONLY_PROGRAMS or arguments in (["--version"], ["--help"]):
        return EXPANSION not in program and "/" not in program
    if program in _SHELL_BUILTINS:
        return _SHELL_BUILTINS[program](arguments)
    check = _PROGRAM_CHECKS.get(program)
    return check is not None and not any(EXPANSION in word for word in arguments) and check(arguments)


def _program_name(word: str) -> str:
    folder, _, name = word.rpartition("/")
    return name if folder in _PROGRAM_FOLDERS or (name == _OWN_PROGRAM and word.startswith("/")) else word


def _without_options(letters: str, *names: str) -> ArgumentsCheck:
    """Accepts arguments without an option of ``letters`` or ``names``, or an abbreviation of a name."""

    def check(arguments: list[str]) -> bool:
        return not any(_is_option(word, letters, names) for word in arguments)

    return check


def _is_option(word: str, letters: str, names: tuple[str, ...]) -> bool:
    if word.startswith("--"):
        typed = word.partition("=")[0]
        return len(typed) > len("--") and any(name.startswith(typed) for name in names)
    return word.startswith("-") and not set(letters).isdisjoint(word)


def _with_subcommand(words: str, options_before: str = "", writing_options: str = "") -> ArgumentsCheck:
    """Accepts arguments whose subcommand is one of ``words``, behind any ``options_before`` with their values.

    writing_options: options that make the program write, wherever they stand.
    """
    allowed, skipped = _words(words), _words(options_before)
    writes_nothing = _without_options("", *writing_options.split())

    def check(arguments: list[str]) -> bool:
        rest = arguments
        while rest and rest[0].partition("=")[0] in skipped:
            rest = rest[1:] if "=" in rest[0] else rest[2:]
        return rest[:1] != [] and rest[0] in allowed and writes_nothing(arguments)

    return check


def _find(arguments: list[str]) -> bool:
    return not any(word.startswith(("-delete", "-exec", "-fls", "-fprint", "-ok")) for word in arguments)


def _date(arguments: list[str]) -> bool:
    return not any(_sets_date(word) for word in arguments)


def _sets_date(word: str) -> bool:
    if word.startswith("-") and not word.startswith("--"):
        return word.lstrip("-uR").startswith("s")  # behind flags without a value
    return word.startswith("--s") or word.replace(".", "").isdigit()


def _terraform(arguments: list[str]) -> bool:
    """A plan that is not saved to a file changes nothing."""
    options = (word.lstrip("-") for word in arguments if word.startswith("-"))
    writes_file = any(option.startswith(("out", "generate-config-out")) for option in options)
    return arguments[:1] != [] and arguments[0] in ("graph", "output", "plan", "show", "version") and not writes_file


def _uniq(arguments: list[str]) -> bool:
    """The second operand is a file that is written."""
    return len([word for word in arguments if word == "-" or not word.startswith("-")]) < 2  # noqa: PLR2004  # see above


def _awk(arguments: list[str]) -> bool:
    """An awk program that starts others or writes files has one of these marks; options may name a program file."""
    options = [word for word in arguments if word.startswith("-") and word != "-"]
    is_inline = all(option.startswith(("-F", "-v")) for option in options)
    return is_inline and not any(mark in word for word in arguments for mark in (">", "|", "@", "system"))


_ARITHMETIC = _words("-eq -ne -lt -le -gt -ge")


def _test(arguments: list[str]) -> bool:
    """A shell runs the subscript of a variable that it looks up, and an operand of a comparison can be one."""
    subscripts = any("[" in word for word in arguments)
    return not any(word in ("-v", "-R") or (subscripts and word in _ARITHMETIC) for word in arguments)


def _printf(arguments: list[str]) -> bool:
    """``-v`` names a variable, whose subscript a shell runs."""
    return not any(word.startswith("-v") for word in arguments[:1])


_PRINTED_LINES = frozenset("0123456789,$;pdq= !")
_FLAGS = frozenset("0123456789gIip")


def _sed(arguments: list[str]) -> bool:
    """Accepts one script that prints or deletes lines by number, or replaces text in the output."""
    operands = [word for word in arguments if not word.startswith("-")]
    options = [word for word in arguments if word.startswith("-")]
    return all(option in ("-n", "-E", "-r") for option in options) and operands != [] and _is_plain_script(operands[0])


def _is_plain_script(script: str) -> bool:
    if _PRINTED_LINES.issuperset(script):
        return True
    delimiter = script[1:2]
    parts = script.split(delimiter) if script[0] == "s" and delimiter in tuple("/|,#@!:") else []
    return len(parts) == len(["s", "old", "new", "flags"]) and _FLAGS.issuperset(parts[-1])


def _xargs(arguments: list[str]) -> bool:
    """Input becomes arguments, so the program must be one that only reads whatever its arguments."""
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-I", "-L", "-n", "-P", "-d") and rest:
            rest.pop(0)
        elif option not in ("-0", "-r", "-I{}", "-n1"):
            return False
    return not rest or _program_name(rest[0]) in _READ_ONLY_PROGRAMS


_GIT_READING = _words("""
    annotate blame cat-file check-attr check-ignore cherry count-objects describe diff diff-index diff-tree
    for-each-ref log ls-files ls-tree merge-base name-rev range-diff rev-list rev-parse shortlog show show-ref status
    var version whatchanged
""")
_GIT_LIST_COMMANDS = frozenset(
    ["branch", "branch -v", "branch -vv", "reflog", "remote", "remote -v", "stash list", "tag", "worktree list"]
)
_GIT_LIST_OPTIONS = {
    "branch": _words("-a -av -avv -r -rv --all --contains --list --merged --no-merged --remotes --show-current"),
    "config": _words("-l --get --get-all --get-regexp --list"),
    "notes": _words("list show"),
    "reflog": _words("show"),
    "remote": _words("get-url show"),
    "stash": _words("list show"),
    "submodule": _words("status"),
    "tag": _words("-l --contains --list --points-at"),
}
"""The words that make these subcommands only list; names may follow the first of them."""

_GIT_DETAIL_OPTIONS = _words(
    "-v -vv -p -u --patch --stat --numstat --name-only --name-status --include-untracked --oneline"
)
"""How detailed a list is. Only behind a listing word: ``git branch -v NAME`` creates a branch."""


def _git(arguments: list[str]) -> bool:
    rest = _after_git_options(arguments)
    if " ".join(rest) in _GIT_LIST_COMMANDS or not rest:
        return True
    if not _git_writes_no_file(rest[1:]):
        return False
    listing = _GIT_LIST_OPTIONS.get(rest[0], frozenset())
    options = {word for word in rest[2:] if word.startswith("-") and word not in listing}
    return rest[0] in _GIT_READING or (rest[1:2] != [] and rest[1] in listing and options <= _GIT_DETAIL_OPTIONS)


def _after_git_options(arguments: list[str]) -> list[str]:
    rest = arguments
    while rest and rest[0] in ("-C", "-P", "--no-pager", "--no-optional-locks"):
        rest = rest[2:] if rest[0] == "-C" else rest[1:]
    return rest


_git_writes_no_file = _without_options("", "--output", "--ext-diff")

_SHELL_BUILTINS: dict[str, ArgumentsCheck] = {"[": _test, "[[": _test, "printf": _printf, "test": _test}
"""The check for each builtin that only reads, whatever a variable in its arguments stands for."""

_PROGRAM_CHECKS: dict[str, ArgumentsCheck] = {
    "awk": _awk,
    "command": _with_subcommand("-v -V"),
    "date": _date,
    "docker": _with_subcommand("images info inspect logs ps version"),
    "fd": _without_options("xX", "--exec", "--exec-batch"),
    "file": _without_options("C", "--compile"),
    "find": _find,
    "git": _git,
    "kubectl": _with_subcommand(
        "api-resources describe explain get logs top version", "-n --namespace --context", "--profile --profile-output"
    ),
    "lsof": _without_options("D"),
    "npm": _with_subcommand("list ls outdated view"),
    "pip": _with_subcommand("check freeze list show", writing_options="--log --log-file --local-log"),
    "rg": _without_options("", "--pre", "--hostname-bin"),
    "sed": _sed,
    "sort": _without_options("o", "--output", "--compress-program"),
    "terraform": _terraform,
    "tree": _without_options("oR"),
    "uniq": _uniq,
    "xargs": _xargs,
    _OWN_PROGRAM: _with_subcommand(_OWN_REPORT_COMMANDS, "--root"),
}
"""The check for each program that can do more than read."""
