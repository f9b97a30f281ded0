"""Contained commands in real namespaces, as root and as another user. Skipped if the machine refuses namespaces."""

from __future__ import annotations

import os
import shutil
import signal
import time
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.runner.contain import why_impossible
from tests.runner.conftest import becomes, linux, needs_user, seeds
from tests.runner.hostile import __file__ as hostile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.runner.conftest import Wrapper

    Wrap = Callable[..., Wrapper]

REFUSED = why_impossible()
pytestmark = [linux, pytest.mark.skipif(REFUSED is not None, reason=f"cannot contain a command here: {REFUSED}")]


@pytest.fixture(params=["ourselves", "another user"])
def wrap_as(request: pytest.FixtureRequest) -> Wrap:
    """Wrappers of the user who runs the tests, and of another user if the machine gives that user namespaces."""
    if request.param == "ourselves":
        wrap: Wrap = request.getfixturevalue("wrap")
        return wrap
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv to act as another user")
    wrap = request.getfixturevalue("wrap_as_user")
    if (why := wrap("print(why_impossible())").result()) != "None":
        pytest.skip(f"a user cannot contain a command here: {why}")
    return wrap


def test_the_exit_code_or_signal_of_a_contained_command_is_reported(wrap_as: Wrap) -> None:
    source = "print([ended(contain('sh', '-c', command)) for command in sys.argv[1:]])"
    commands = ("exit 0", "exit 3", "exit 255", "kill -9 $$", "kill $$")
    assert wrap_as(source, *commands).result() == "[0, 3, 255, 137, 143]"


def test_a_missing_command_exits_with_127_even_if_a_shell_builtin_has_its_name(wrap: Wrap) -> None:
    source = "print([ended(contain(name, stderr=os.open(os.devnull, 1))) for name in ('no-such', 'set')])"
    assert wrap(source).result() == "[127, 127]"


def test_a_contained_command_has_its_own_pid_namespace_and_the_same_user(wrap_as: Wrap) -> None:
    source = """
reader, writer = os.pipe()
look = "readlink /proc/self/ns/pid; ls /proc | grep -c '^[0-9]'; id -u; exec sleep 60"
child = contain("sh", "-c", look, stdout=writer)
heard = open(reader)
inside, count, user = (heard.readline().strip() for _ in range(3))
print(inside == namespace_of(child.pid) != os.readlink("/proc/self/ns/pid"), int(count) < 8, int(user) == os.getuid())
print(namespace_of(os.getpid()), namespace_of(2**22 + 1), process_tree.kill_all(child, 5), child.exit_code)
"""
    assert wrap_as(source).result().splitlines() == ["True True True", "None None [] 137"]


HEEDS = """
import os, signal, sys, time
def got(number, _):
    time.sleep(0.2)
    os.write(1, f"{signal.Signals(number).name}\\n".encode())
    os._exit(7)
for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT:
    signal.signal(number, got)
os.write(1, b"ready\\n")
time.sleep(60)
"""


def test_a_contained_command_receives_a_signal_and_may_handle_it(wrap_as: Wrap) -> None:
    source = """
for name in sys.argv[2:]:
    reader, writer = os.pipe()
    child = contain(*python(sys.argv[1]), stdout=writer)
    heard = open(reader)
    print(heard.readline(), end="")
    process_tree.send(child, getattr(signal, name))
    print(heard.readline(), ended(child))
"""
    names = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
    heard = wrap_as(source, HEEDS, *names).result().split()
    assert heard == [word for name in names for word in ("ready", name, "7")]


def test_background_processes_end_with_the_contained_command(wrap_as: Wrap) -> None:
    wrapper = wrap_as("print(ended(contain('sh', '-c', 'setsid sleep 60 & sleep 0.1; exit 5')))")
    assert wrapper.result() == "5"
    assert becomes(lambda: wrapper.left() == [])


def test_a_contained_command_stops_and_runs_again(wrap_as: Wrap) -> None:
    source = """
child = contain("sleep", "0.4")
until(lambda: len(process_tree.descendants()) == 3)
process_tree.stop()
time.sleep(0.5)
process_tree.reap(child)
print(child.exit_code)
process_tree.go_on()
print(ended(child))
"""
    assert wrap_as(source).result().splitlines() == ["None", "0"]


KILLED = """
nothing = os.open("/dev/null", os.O_RDWR)
contain(sys.executable, "-I", "-S", *sys.argv[1:], stdin=nothing, stdout=nothing, stderr=nothing)
print("begun", flush=True)
time.sleep(60)
"""


@pytest.fixture
def readable_hostile(tmp_path: Path) -> str:
    """A copy of the hostile command that every user may read."""
    for folder in [tmp_path, *tmp_path.parents]:
        folder.chmod(folder.stat().st_mode | 0o055)
    return shutil.copy(hostile, str(tmp_path))


def dies_with_its_wrapper(wrap: Wrap, command: str, seed: int) -> None:
    wrapper = wrap(KILLED, command, str(seed))
    assert wrapper.line() == "begun"
    time.sleep(seed % 10 / 30 if seed % 2 else seed / 5000)  # half of them while the namespace is created

    os.kill(wrapper.process.pid, signal.SIGKILL)

    assert becomes(lambda: wrapper.left() == []), f"seed {seed}"


@pytest.mark.parametrize("seeds", seeds(2, 5, 53))
def test_no_contained_process_survives_a_kill_of_the_wrapper(
    wrap_as: Wrap, readable_hostile: str, seeds: range
) -> None:
    for seed in seeds:
        dies_with_its_wrapper(wrap_as, readable_hostile, seed)


def test_without_unshare_the_reason_names_the_package_to_install(wrap: Wrap, tmp_path: Path) -> None:
    source = "os.environ['PATH'] = sys.argv[1]; print(why_impossible())"
    assert wrap(source, str(tmp_path)).result() == "the command unshare is missing: install util-linux"


@needs_user
def test_for_root_in_a_container_the_reason_names_the_missing_capability(wrap: Wrap) -> None:
    through = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    assert wrap("print(why_impossible())", through=through).result() == (
        "the system refuses it (unshare: unshare failed: Operation not permitted):"
        " in a container, it needs the capability SYS_ADMIN"
    )


@needs_user
def test_for_a_user_without_user_namespaces_the_reason_says_what_is_needed(wrap_as_user: Wrap) -> None:
    limit = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    before = ("unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c", limit, "sh")
    assert wrap_as_user("print(why_impossible())", before=before).result() == (
        "the system refuses it (unshare: unshare failed: No space left on device):"
        " it needs root, or user namespaces, which an administrator can allow"
    )
