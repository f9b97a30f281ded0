"""What can be wrong in a host's settings file: the file cannot be read, or its hooks do not start as they should."""

from __future__ import annotations

import os
from itertools import islice

from gaia_sessions.errors import BadSetting
from gaia_sessions.hook import ALLOW_REPORT, ENFORCE, argument_words
from gaia_sessions.hook.texts import TODOS, UPDATE
from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.install import hook_command
from gaia_sessions.install.entries import MOST_OWN, by_hand, matches
from gaia_sessions.install.executable import interpreter_of
from gaia_sessions.install.installed_file import ELSEWHERE
from gaia_sessions.install.json_text import as_object
from gaia_sessions.install.permission import commands_without_rule, own_rules
from gaia_sessions.system.project_root import find_root, working_directory

from .findings import PROBLEM, WARNING, edit_command, finding, own_command, shell_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypedDict

    from gaia_sessions.install.installed_file import InstalledFile, InstallState
    from gaia_sessions.install.places import Places
    from gaia_sessions.jsonio.strict import Json

    class HookFinding(TypedDict):
        """What can keep the hooks from working; ``code`` is for programs and never changes."""

        code: str
        state: str
        message: str
        file: str | None
        fix: str | None


UNREADABLE_SETTINGS = "unreadable_settings"
TOO_MANY = "too_many"
ALL_HOOKS_DISABLED = "all_hooks_disabled"
MISSING_INTERPRETER = "missing_interpreter"
MISSING_SCRIPT = "missing_script"
INSTALLED_TWICE = "installed_twice"
MISSING_EVENTS = "missing_events"
OTHER_COMMAND = "other_command"
COMMAND_NOT_ALLOWED = "command_not_allowed"
BROKEN_MIXED_ENTRY = "broken_mixed_entry"
MIXED_ENTRY = "mixed_entry"
REWRITER = "rewriter"

DUPLICATE_NOTE = "nothing is counted twice, but an event may start two hooks"
_REFUSAL_NOTE = "Python then exits with 2, which clients treat as a refusal"
_DOES_NOTHING_NOTE = "the hooks then do nothing; install them again, or uninstall them"

_MOST_ALIKE = 20
"""The most findings of one kind about one file: a file can have thousands of entries."""

_WHAT_FOR = {UPDATE: "report", TODOS: "keep todos"}
"""What agents do with the commands that ``--allow-report`` allows."""


def told(code: str, state: str, message: str, path: str | None = None, fix: str | None = None) -> HookFinding:
    """Returns a finding about hooks; if there is a ``path``, the message always contains it."""
    whole = message if path is None or path in message else f"{message} ({path})"
    found = finding("hooks", state, whole, fix)
    return {"code": code, "state": state, "message": found["found"], "file": path, "fix": found["fix"]}


def command_for_root(places: Places, *words: str) -> str:
    """Returns the command ``gaia-sessions`` with ``words``, with ``--root`` if the command would find another root."""
    try:
        is_found = find_root(None, places.variables, working_directory()) == places.root
    except BadSetting:
        is_found = False
    return own_command(places.variables, *([] if is_found else ["--root", places.root]), *words)


def install_command(places: Places, file: InstalledFile, *more: str) -> str:
    """Returns the command that installs the hooks in ``file`` again, with ``more`` options."""
    if file.why_no_hooks():  # an installation would refuse the file
        return edit_command(file.path)
    return command_for_root(places, "hooks", "install", *install_options(file, *more))


def install_options(file: InstalledFile, *more: str) -> list[str]:
    """Returns the options of the installation in ``file``, and ``more``, without options that its host lacks."""
    words = (*file.command, *more)
    reports = ALLOW_REPORT in words and file.host.name == CLAUDE_CODE
    enforce = ENFORCE in words and bool(file.host.enforced)
    return ["--host", file.host.name, f"--{file.scope}", *argument_words(reports=reports, enforce=enforce)]


def file_findings(places: Places, file: InstalledFile, state: InstallState) -> Iterator[HookFinding]:
    """Yields the findings about ``file`` alone."""
    path, edit = file.path, edit_command(file.path)
    if state["problem"]:
        yield told(
            UNREADABLE_SETTINGS, PROBLEM, f"{state['problem']}; its client may ignore the whole file", path, edit
        )
    for what, own in (("entries start", file.own), ("rules allow", own_rules(file.text))):
        if len(own) > MOST_OWN:
            yield told(TOO_MANY, PROBLEM, by_hand(what), path, edit)
    install = install_command(places, file)
    gone = [*_of_program(file)]
    for code, severity, message in (*gone, *_of_entries(file, state)):
        if not gone or code != OTHER_COMMAND:
            yield told(code, severity, message, path, install)
    for script in _missing_scripts([entry.handler for entry in file.mixed]):
        message = f"a command of your own in {path} names {script}, which does not exist; {_REFUSAL_NOTE}"
        yield told(BROKEN_MIXED_ENTRY, PROBLEM, message, path, edit)
    mixed = dict.fromkeys(" ".join(hook_command.words_of(entry.handler)) for entry in file.mixed)
    for command in islice(mixed, _MOST_ALIKE):
        message = f"{command} starts gaia-sessions and something else; install and uninstall do not change this entry"
        yield told(MIXED_ENTRY, WARNING, message, path)


def rest_findings(file: InstalledFile) -> Iterator[HookFinding]:
    """Yields what in ``file``, besides our own entries, keeps our hooks of this host from working."""
    path = file.path
    if as_object(file.text.value).get("disableAllHooks") is True:
        message = f"disableAllHooks is true in {path}: no hook runs"
        yield told(ALL_HOOKS_DISABLED, PROBLEM, message, path, edit_command(path))
    for command in islice(_commands_on_delegations(file), _MOST_ALIKE):
        message = (
            f"{command} and our hook may both rewrite delegations, and then only the last to finish counts; if this "
            f"command rewrites delegations, exclude {', '.join(file.host.delegation)} from its matcher"
        )
        yield told(REWRITER, WARNING, message, path)


def _of_program(file: InstalledFile) -> Iterator[tuple[str, str, str]]:
    """Yields code, state and message for programs and scripts that our entries name and that cannot be started."""
    program = file.command[0] if file.command else ""
    started = [program]
    if hook_command.is_own_script(program):
        is_there = os.path.isfile(program)  # if not, a finding below says so
        started = [program, interpreter_of(program) or ""] if is_there else []
    for path in started:
        if os.path.isabs(path) and not _can_be_started(path):
            yield MISSING_INTERPRETER, PROBLEM, f"{file.path} names {path}, which cannot be started"
    for is_direct, note in ((False, _REFUSAL_NOTE), (True, _DOES_NOTHING_NOTE)):
        handlers = [entry.handler for entry in file.own]
        alike = [handler for handler in handlers if hook_command.starts_script_directly(handler) == is_direct]
        for script in _missing_scripts(alike):
            yield MISSING_SCRIPT, PROBLEM, f"{file.path} names {script}, which does not exist; {note}"


def _of_entries(file: InstalledFile, state: InstallState) -> Iterator[tuple[str, str, str]]:
    """Yields code, state and message for entries and rules that an installation would write differently."""
    entries = [hook_command.wanted_entry_of(entry.event, entry.matcher, entry.handler) for entry in file.own]
    if len({*map(repr, entries)}) < len(entries):
        yield INSTALLED_TWICE, PROBLEM, f"an event has more than one gaia-sessions entry; {DUPLICATE_NOTE}"
    where = f"the hooks of {file.host.name} in {file.path}"
    if state["missing"]:
        yield MISSING_EVENTS, PROBLEM, f"{where} are not called for {', '.join(state['missing'])}"
    elif state["state"] == ELSEWHERE:
        command = shell_command(*file.command)
        yield OTHER_COMMAND, WARNING, f"{where} differ from what this installation writes: {command}"
    for command in commands_without_rule(file.text) if ALLOW_REPORT in file.command else []:
        message = f"sub-agents need a permission each time they {_WHAT_FOR[command]}"
        yield COMMAND_NOT_ALLOWED, WARNING, f"these hooks are of an earlier version: {message}"


def _can_be_started(path: str) -> bool:
    try:
        return os.access(path, os.X_OK)
    except ValueError:  # a name that no file can have
        return False


def _missing_scripts(handlers: list[Json]) -> list[str]:
    """Returns our scripts that do not exist. A path with a variable counts as existing: a shell expands it."""
    scripts = dict.fromkeys(path for handler in handlers for path in hook_command.own_scripts(handler))
    return [path for path in scripts if os.path.isabs(path) and not os.path.isfile(path)][:_MOST_ALIKE]


def _commands_on_delegations(file: InstalledFile) -> Iterator[str]:
    """Yields the commands of other hooks that are called for delegations."""
    ours = {id(entry) for entry in (*file.own, *file.mixed)}
    for entry in file.entries:
        if entry.event == file.host.delegates and id(entry) not in ours:
            command = " ".join(hook_command.words_of(entry.handler))
            if command and any(matches(entry.matcher, tool) for tool in file.host.delegation):
                yield command
