"""Rules of the source code: which package may import which, which modules import third parties, write files or
read the clock and the environment.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import gaia_sessions
from gaia_sessions.session import phases
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Found = TypeVar("Found")

PACKAGE = "gaia_sessions"
SOURCE = Path(gaia_sessions.__file__).parent

# From the ground up: a package imports from itself and from the packages before it.
FLOORS = [
    ["errors"],
    ["jsonio"],
    ["session"],
    ["system"],
    ["config"],
    ["store"],
    ["postgres"],
    ["hosts"],
    ["ingest"],
    ["api"],
    ["adk"],
    ["runner"],
    ["hook"],
    ["install"],
    ["doctor"],
    ["models"],
    ["cli"],
    ["old_python"],
    ["__main__"],
]
FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}

DOORS = {
    "click": "cli/",
    "rich": "cli/render/",
    "pydantic": "models/",
    "pydantic_core": "models/",  # the engine of pydantic, installed with it
    "filelock": "store/locks.py",
    "google": "adk/service.py",
    "dateutil": "api/times.py",
    "psutil": "runner/process_tree.py",
    "psycopg": "postgres/connections.py",
}
STDLIB_ONLY = [
    *("errors", "jsonio", "session", "system", "config", "store", "ingest"),
    *("hosts", "hook", "install", "doctor"),
]
CALLED_BY_HOOKS = [
    f"api/{name}.py"
    for name in (
        "briefing",
        "cancelling",
        "creating",
        "earlier_turns",
        "foresight",
        "keys",
        "permitting",
        "preconditions",
        "questions",
        "reporting",
        "standing",
    )
]
PURE = ["errors", "jsonio", "session"]
READS_THE_ENVIRONMENT = ["api", "runner", "hook", "cli", "old_python"]

FILES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))


class Import(NamedTuple):
    """A module that a file imports, by its full name."""

    line: int
    name: str


def room_of(file: str) -> str:
    return file.partition("/")[0].removesuffix(".py")


@cache
def tree_of(file: str) -> ast.Module:
    return ast.parse((SOURCE / file).read_text(encoding="utf-8"), file)


def running(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below ``node``, without code for type checkers only."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        children = [*ast.iter_child_nodes(node)]
        if isinstance(node, ast.If) and is_for_types(node.test):
            children = [child for child in children if child not in node.body]
        waiting += reversed(children)


def is_for_types(test: ast.expr) -> bool:
    return isinstance(test, ast.Name | ast.Attribute) and ast.unparse(test).endswith("TYPE_CHECKING")


@cache
def running_in(file: str) -> list[ast.AST]:
    return [*running(tree_of(file))]


@cache
def all_in(file: str) -> list[ast.AST]:
    return [*ast.walk(tree_of(file))]


@cache
def imports_of(file: str, *, types: bool = False) -> list[Import]:
    """The imports of ``file``, with ``types`` also those for type checkers only.

    A name after ``from ... import`` counts as a module if there is such a module.
    """
    return [*_imports(file, all_in(file) if types else running_in(file))]


def _imports(file: str, nodes: Iterable[ast.AST]) -> Iterator[Import]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(file, node)
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield Import(node.lineno, whole if is_module(whole) else base)


def absolute(file: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    here = [PACKAGE, *Path(file).parts][: -node.level]
    return ".".join([*here, node.module] if node.module else here)


def is_module(name: str) -> bool:
    path = SOURCE.joinpath(*name.split(".")[1:])
    return name.startswith(f"{PACKAGE}.") and (path.is_dir() or path.with_suffix(".py").is_file())


def is_allowed(file: str, target: str) -> bool:
    """Whether ``file`` may import the module ``target`` of the package."""
    parts = target.split(".")
    if len(parts) == 1:
        return FLOOR_OF[room_of(file)] >= FLOOR_OF["hook"]  # the package itself: the version and the public names
    room, other = room_of(file), parts[1]
    return room == other or FLOOR_OF[other] < FLOOR_OF[room]


def test_every_file_is_in_a_package_of_the_list() -> None:
    assert [file for file in FILES if room_of(file) not in {*FLOOR_OF, "__init__"}] == []


def found_in(files: Iterable[str], find: Callable[[str], Found]) -> dict[str, Found]:
    """The result of ``find`` for each of ``files`` in which it finds something."""
    return {file: found for file in files if (found := find(file))}


def test_a_package_imports_only_packages_before_it_in_the_list_even_for_types() -> None:
    def forbidden(file: str) -> list[Import]:
        own = [found for found in imports_of(file, types=True) if found.name.split(".")[0] == PACKAGE]
        return [found for found in own if not is_allowed(file, found.name)]

    assert found_in((file for file in FILES if file != "__init__.py"), forbidden) == {}


def test_imports_have_no_cycles_even_for_types() -> None:
    order = {name_of(file): {found.name for found in imports_of(file, types=True)} for file in FILES}
    TopologicalSorter(order).prepare()  # raises CycleError


def name_of(file: str) -> str:
    return f"{PACKAGE}.{file.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"


def test_importing_the_package_imports_nothing_and_using_it_imports_the_api_alone() -> None:
    at_once = [node for node in tree_of("__init__.py").body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert at_once == []
    assert {found.name.rpartition(".")[0] for found in imports_of("__init__.py")} == {f"{PACKAGE}.api"}


def test_commands_import_neither_the_store_nor_ingest() -> None:
    others = ("cli/render/", "cli/main.py")  # rendering needs only names; main logs bugs
    commands = [file for file in FILES if file.startswith("cli/") and not file.startswith(others)]
    beside = {f"{PACKAGE}.{room}" for room in ("store", "ingest")}

    def found_beside(file: str) -> list[Import]:
        return [found for found in imports_of(file) if ".".join(found.name.split(".")[:2]) in beside]

    assert found_in(commands, found_beside) == {}


def test_a_third_party_is_imported_only_through_its_door() -> None:
    def elsewhere(file: str) -> list[Import]:
        known = {PACKAGE, *sys.stdlib_module_names}
        third_parties = [found for found in imports_of(file) if found.name.split(".")[0] not in known]
        return [found for found in third_parties if not opens(file, found.name.split(".")[0])]

    assert found_in(FILES, elsewhere) == {}


def opens(file: str, third_party: str) -> bool:
    door = DOORS.get(third_party)
    return door is not None and (file.startswith(door) if door.endswith("/") else file == door)


def test_store_locks_is_the_only_door_in_packages_that_hooks_load() -> None:
    doors = {door for door in DOORS.values() if room_of(door) in STDLIB_ONLY}
    assert doors == {"store/locks.py"}


def test_the_api_modules_that_hooks_load_are_listed_and_import_no_third_party() -> None:
    # hook/selftest.py is left out: only people run it.
    waiting = [f for f in FILES if room_of(f) == "hook" and f != "hook/selftest.py"]
    reached: set[str] = set()
    while waiting:
        for found in imports_of(waiting.pop()):
            file = f"{'/'.join(found.name.split('.')[1:])}.py"
            if file.startswith("api/") and file not in reached:
                reached.add(file)
                waiting.append(file)
    assert sorted(reached) == CALLED_BY_HOOKS
    assert not reached & set(DOORS.values())


def called(node: ast.Call) -> str:
    return ast.unparse(node.func)


_WRITING = {"O_CREAT", "write_text", "write_bytes"}
_WRITING_OF_OS = {"rename", "renames", "replace", "fsync", "link", "truncate", "mkfifo"}


def writes(node: ast.AST) -> bool:
    """Whether ``node`` opens a file for writing, moves one or syncs it."""
    if isinstance(node, ast.Name):
        return node.id in _WRITING
    if isinstance(node, ast.Attribute):
        return node.attr in _WRITING or (node.attr in _WRITING_OF_OS and ast.unparse(node.value) == "os")
    if isinstance(node, ast.ImportFrom):
        return node.module == "os" and bool(
            {alias.name for alias in node.names} & {"rename", "replace", "fsync", "open"}
        )
    return (
        isinstance(node, ast.Call) and called(node) in {"open", "io.open", "os.fdopen", "gzip.open"} and not reads(node)
    )


def reads(node: ast.Call) -> bool:
    """Whether this call of ``open`` clearly changes no file: it only reads, or writes to the null device."""
    if node.args and ast.unparse(node.args[0]) == "os.devnull":
        return True
    keyword = next((keyword.value for keyword in node.keywords if keyword.arg == "mode"), None)
    mode = node.args[1] if len(node.args) > 1 else keyword
    return mode is None or (isinstance(mode, ast.Constant) and not set("wax+") & set(str(mode.value)))


_ALTERING = {"makedirs", "mkdir", "chmod", "fchmod", "lchmod", "unlink", "remove", "rmdir", "removedirs"}
_OPENING = {"O_TRUNC", "O_WRONLY", "O_RDWR", "O_APPEND"}


def alters(node: ast.AST) -> bool:
    """Whether ``node`` makes or removes a folder, removes a file, changes a mode, or opens something for writing."""
    if isinstance(node, ast.Attribute):
        return node.attr in _OPENING or (node.attr in _ALTERING and ast.unparse(node.value) == "os")
    if isinstance(node, ast.ImportFrom):
        return node.module == "os" and bool({alias.name for alias in node.names} & (_ALTERING | _OPENING))
    return False


# Changes of files outside the store.
OUTSIDE_THE_STORE = {
    "cli/main.py": {"os.makedirs"},  # the folder for the stack trace of a crash
    "cli/output.py": {"os.O_WRONLY"},  # the null device, in place of a closed stream
    "doctor/all_checks.py": {"os.chmod"},  # --fix: a root that its owner cannot use
    "doctor/own_files.py": {"os.chmod"},  # --fix: files that others can read
    "old_python.py": {
        "os.O_APPEND",
        "os.O_CREAT",
        "os.O_WRONLY",
        "os.mkdir",
    },  # the log, under a Python that can run nothing else of ours
    "install/plan.py": {"os.rmdir"},  # an empty folder of settings
    "system/streams.py": {"os.O_RDWR", "os.O_WRONLY"},  # the null device and the terminal
}


def test_only_the_store_and_the_listed_modules_change_files() -> None:
    def changes(file: str) -> set[str]:
        return {ast.unparse(node) for node in running_in(file) if writes(node) or alters(node)}

    assert found_in((file for file in FILES if room_of(file) != "store"), changes) == OUTSIDE_THE_STORE


# Changes of files in the store outside ``atomic``: it moves folders, syncs names and logs of commands, and makes lock
# files.
BESIDE_ATOMIC = {
    "store/index.py": {"os.rename"},  # a folder in place of a shard
    "store/open_session.py": {"os.rename", "os.fsync"},
    "store/session_directory.py": {"os.rename", "os.fsync"},
    "store/directory.py": {"os.O_CREAT"},
    "store/superuser.py": {"os.O_CREAT"},
    "store/root.py": {"os.fsync"},
    "store/output_file.py": {"os.fsync"},
    "store/hook_log.py": {"os.rename"},
}


def test_in_the_store_only_atomic_and_the_listed_modules_write_files() -> None:
    def written_by(file: str) -> set[str]:
        return {ast.unparse(node) for node in running_in(file) if writes(node)}

    files = [file for file in FILES if room_of(file) == "store" and file != "store/atomic.py"]
    assert found_in(files, written_by) == BESIDE_ATOMIC


_ENVIRONMENT = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}


def reads_environment(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _ENVIRONMENT and ast.unparse(node.value) == "os"
    return (
        isinstance(node, ast.ImportFrom)
        and node.module == "os"
        and not _ENVIRONMENT.isdisjoint(alias.name for alias in node.names)
    )


def is_handed_the_environment(file: str) -> bool:
    """Whether ``file`` may get the environment only as an argument."""
    if file == "hosts/host_files.py":  # needs the folder of the client at every opening
        return False
    return room_of(file) not in READS_THE_ENVIRONMENT or file.startswith("cli/render/") or file in CALLED_BY_HOOKS


def test_only_packages_that_answer_calls_read_the_environment() -> None:
    def read(file: str) -> list[str]:
        return [ast.unparse(node) for node in running_in(file) if reads_environment(node)]

    assert found_in(filter(is_handed_the_environment, FILES), read) == {}


# The readers of the wall clock. Code that answers a call asks ``utc_now`` and passes ``now`` on.
READS_THE_CLOCK = {
    "system/__init__.py": {"datetime.now"},
    "system/boots.py": {"time.time"},  # the time of the start, if the system has no boot ID
    "old_python.py": {"time.gmtime"},  # under a Python that can run nothing else of ours
    "store/external_file.py": {"time.time"},  # the age of a file, by the same clock
}
_CLOCKS = {"now", "utcnow", "today", "time", "time_ns", "localtime", "gmtime"}


@cache
def calls_in(file: str) -> set[str]:
    return {called(node) for node in running_in(file) if isinstance(node, ast.Call)}


def test_only_the_listed_modules_read_the_wall_clock() -> None:
    def clocks(file: str) -> set[str]:
        found = {call for call in calls_in(file) if call.partition(".")[0] in {"datetime", "date", "time"}}
        return {call for call in found if call.rpartition(".")[2] in _CLOCKS}

    assert found_in(FILES, clocks) == READS_THE_CLOCK


def test_wording_reads_no_store_no_clock_and_no_file() -> None:
    def read(file: str) -> set[str]:
        stores = {found.name for found in imports_of(file) if found.name.startswith(f"{PACKAGE}.store")}
        return stores | (calls_in(file) & {"open", "os.open", "utc_now"})

    assert found_in((file for file in FILES if file.startswith("cli/render/")), read) == {}


_WORLD = {
    *("os", "io", "pathlib", "shutil", "subprocess", "socket", "tempfile", "time", "random", "secrets", "threading")
}
_WORLDLY_CALLS = {"open", "print", "input", "utc_now", "datetime.now", "datetime.utcnow", "datetime.today"}


def test_the_domain_touches_no_file_no_process_and_no_clock() -> None:
    def touched(file: str) -> set[str]:
        imports = {found.name for found in imports_of(file) if found.name.split(".")[0] in _WORLD}
        return imports | (calls_in(file) & _WORLDLY_CALLS)

    assert found_in((file for file in FILES if room_of(file) in PURE), touched) == {}


_IGNORE = re.compile(r"# (?:noqa: [A-Z0-9, ]+|type: ignore\[(?P<codes>[a-z, -]+)\])(?P<reason>  # \S.*)?$")
_OF_KEYS = {"literal-required", "return-value", "assignment"}
"""Codes for a TypedDict that is made from the keys of another one. They need no written reason."""


def test_every_suppressed_check_has_its_reason_beside_it() -> None:
    def without_reason(file: str) -> list[str]:
        lines = (SOURCE / file).read_text(encoding="utf-8").splitlines()
        ignores = [(line, _IGNORE.search(line)) for line in lines if "# noqa" in line or "# type: ignore" in line]
        return [line for line, found in ignores if not (found and (found["reason"] or is_of_keys(found["codes"])))]

    assert found_in(FILES, without_reason) == {}


def is_of_keys(codes: str | None) -> bool:
    return codes is not None and {code.strip() for code in codes.split(",")} <= _OF_KEYS


@table(
    "source",
    [
        "open('f', 'w')",
        "open('f', mode='ab')",
        "open('f', mode)",
        "open('f', 'r+')",
        "os.fdopen(3, 'xb')",
        "os.replace('a', 'b')",
        "move = os.rename",
        "os.fsync(3)",
        "os.open('f', os.O_WRONLY | os.O_CREAT)",
        "from os import replace",
        "Path('f').write_text('x')",
    ],
)
def test_writing_is_recognized(source: str) -> None:
    assert any(writes(node) for node in running(ast.parse(source)))


@table(
    "source",
    [
        "os.makedirs('d')",
        "make = os.mkdir",
        "os.chmod('f', 0o600)",
        "os.unlink('f')",
        "os.rmdir('d')",
        "os.open('f', os.O_RDWR | os.O_TRUNC)",
        "os.open('f', os.O_WRONLY)",
        "from os import unlink",
    ],
)
def test_altering_is_recognized(source: str) -> None:
    assert any(alters(node) for node in running(ast.parse(source)))


@table(
    "source",
    [
        "open('f')",
        "open('f', 'rb')",
        "open('f', mode='r')",
        "'a'.replace('b', 'c')",
        "[1].remove(1)",
        "os.open('f', os.O_RDONLY)",
        "open(os.devnull, 'w')",
    ],
)
def test_reading_is_not_taken_for_writing(source: str) -> None:
    assert not any(writes(node) or alters(node) for node in running(ast.parse(source)))


def test_code_for_type_checkers_is_exempt_and_code_that_runs_is_not() -> None:
    tree = ast.parse(
        "if TYPE_CHECKING:\n    import seen_never\nelse:\n    import seen_now\ndef f():\n    import seen_later\n"
    )
    names = [alias.name for node in running(tree) if isinstance(node, ast.Import) for alias in node.names]
    assert names == ["seen_now", "seen_later"]


@table(
    ("file", "target", "allowed"),
    [
        ("session/record.py", "gaia_sessions.session.schema", True),
        ("jsonio/strict.py", "gaia_sessions.session.record", False),
        ("store/file_store.py", "gaia_sessions.store.locks", True),
        ("store/file_store.py", "gaia_sessions.ingest.dispatch", False),
        ("system/processes.py", "gaia_sessions.store.root", False),
        ("hosts/codex/__init__.py", "gaia_sessions.hook.texts", False),
        ("session/policy.py", "gaia_sessions.system.processes", False),
        ("config/__init__.py", "gaia_sessions.store.root", False),
        ("config/__init__.py", "gaia_sessions.system.project_root", True),
        ("cli/main.py", "gaia_sessions", True),
        ("api/__init__.py", "gaia_sessions", False),
    ],
)
def test_the_list_allows_imports_downwards_only(file: str, target: str, allowed: bool) -> None:  # noqa: FBT001
    assert is_allowed(file, target) == allowed


@table(
    ("file", "source", "name"),
    [
        ("store/file_store.py", "from . import atomic", "gaia_sessions.store.atomic"),
        ("store/file_store.py", "from .locks import Lock", "gaia_sessions.store.locks"),
        ("store/file_store.py", "from .. import errors", "gaia_sessions.errors"),
        ("api/__init__.py", "from gaia_sessions.errors import InvalidInput", "gaia_sessions.errors"),
        ("session/record.py", "from . import runs", "gaia_sessions.session.runs"),
        ("session/record.py", "from gaia_sessions.jsonio import strict", "gaia_sessions.jsonio.strict"),
        ("session/record.py", "from gaia_sessions import __version__", "gaia_sessions"),
        ("session/record.py", "from os import path", "os"),
    ],
)
def test_an_import_is_resolved_to_the_module_it_means(file: str, source: str, name: str) -> None:
    [node] = ast.parse(source).body
    assert isinstance(node, ast.ImportFrom)
    base = absolute(file, node)
    whole = f"{base}.{node.names[0].name}"
    assert (whole if is_module(whole) else base) == name


PHASE_NAMES = {name for name, value in vars(phases).items() if value in phases.PHASES or isinstance(value, tuple)}


def compares_phase(node: ast.AST) -> bool:
    """Whether ``node`` compares something with the name of a phase, or with a group of phases."""
    if not isinstance(node, ast.Compare | ast.MatchValue):
        return False
    inner = list(ast.walk(node))
    names = {ast.unparse(one).rpartition(".")[2] for one in inner if isinstance(one, ast.Name | ast.Attribute)}
    texts = {one.value for one in inner if isinstance(one, ast.Constant)}
    return not (names.isdisjoint(PHASE_NAMES) and texts.isdisjoint(phases.PHASES))


# Comparisons with words of hosts that look like phases.
NO_PHASES = {
    "hosts/claude_code/__init__.py": {"response.get('status') != 'completed'"},
    "hosts/claude_code/workflows.py": {"entry.get('type') == 'failed'"},
    "hosts/codex/__init__.py": {"'completed' in state"},
    "hosts/gemini_cli/__init__.py": {"state == 'completed'"},
    "hosts/qwen_code/__init__.py": {"status == 'completed'", "status not in ('completed', 'failed', 'cancelled')"},
}


def test_only_the_table_of_phases_compares_the_name_of_a_phase() -> None:
    def compared(file: str) -> set[str]:
        return {ast.unparse(node) for node in running_in(file) if compares_phase(node)}

    assert found_in((file for file in FILES if file != "session/phases.py"), compared) == NO_PHASES


# Modules that name a phase: of a new record, or the outcome of a host, an exit code or a with block.
STATES_A_PHASE = {
    "session/record.py": {"COMPLETED", "INITIALIZING"},
    "hosts/claude_code/notifications.py": {"COMPLETED", "FAILED", "ABANDONED"},
    "hosts/claude_code/workflows.py": {"COMPLETED", "FAILED"},
    "hosts/codex/__init__.py": {"COMPLETED"},
    "hosts/qwen_code/agents.py": {"COMPLETED", "FAILED", "ABANDONED"},
    "hook/direct.py": {"COMPLETED", "FAILED"},
    "api/ephemeral.py": {"COMPLETED", "FAILED", "ABANDONED"},
}


def test_only_the_table_of_phases_chooses_the_next_phase() -> None:
    single = {name for name, value in vars(phases).items() if value in phases.PHASES}

    def stated(file: str) -> set[str]:
        imports = [node for node in all_in(file) if isinstance(node, ast.ImportFrom)]
        of_phases = [node for node in imports if (node.module or "").endswith("phases")]
        return single & {alias.name for node in of_phases for alias in node.names}

    assert found_in((file for file in FILES if file != "session/phases.py"), stated) == STATES_A_PHASE


def test_every_call_of_policy_decide_passes_the_cancellation_and_the_evidence() -> None:
    asked: dict[str, set[tuple[str | None, str]]] = {}
    for file in FILES:
        for node in all_in(file):
            if isinstance(node, ast.Call) and called(node) == "policy.decide":
                asked.setdefault(file, set()).update((word.arg, ast.unparse(word.value)) for word in node.keywords)
    assert asked == {
        "ingest/delegate.py": {("cancellation", "cancellation"), (None, "evidence_of(record)")},
        "api/standing.py": {
            ("cancellation", "cancellation"),
            (None, "_evidence_if_any(record)"),
            (None, "evidence"),  # the result of evidence_of, which the state needs too
        },
    }


def test_no_module_imports_decide_from_the_policy() -> None:
    named = {
        file
        for file in FILES
        for node in all_in(file)
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("policy")
        if any(alias.name == "decide" for alias in node.names)
    }
    assert named == set()
