from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gaia_sessions.system.shell_words import EXPANSION, MAX_COMMAND_LENGTH, commands_in


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("", []),
        (" \t\n;", []),
        ("ls", [["ls"]]),
        ("ls  -la\tsrc", [["ls", "-la", "src"]]),
        ("a;b\nc&&d||e|f|&g", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"], ["g"]]),
        ("echo 'a b' \"c d\" e\\ f", [["echo", "a b", "c d", "e f"]]),
        ("echo '$(rm x)' '`' '>' \"a > b; c\"", [["echo", "$(rm x)", "`", ">", "a > b; c"]]),
        ("echo \"\" ''", [["echo", "", ""]]),
        (r'echo "a\"b\$c\\d\e"', [["echo", r'a"b$c\d\e']]),
        (r"find . \( -name x \) \;", [["find", ".", "(", "-name", "x", ")", ";"]]),
        ("echo a\\\nb", [["echo", "ab"]]),
        ("echo $HOME \"$A b\" '$C'", [["echo", f"{EXPANSION}HOME", f"{EXPANSION}A b", "$C"]]),
        ("echo {a,b} {}", [["echo", f"{EXPANSION}a,b}}", "{}"]]),
        ("# why\nls # that\ncat a#b", [["ls"], ["cat", "a#b"]]),
        ("make 2>&1 >/dev/null 2>> /dev/null &>/dev/null | tail", [["make"], ["tail"]]),
        ("make>/dev/null;ls", [["make"], ["ls"]]),
        ("ls a2>/dev/null 1>&2", [["ls", "a2"]]),
        ("wc -l < in.txt", [["wc", "-l"]]),
        ("wc 0<in.txt | cat", [["wc"], ["cat"]]),
        ("wc < 'in put' -l", [["wc", "-l"]]),
    ],
)
def test_the_words_of_every_command_are_told(text: str, commands: list[list[str]]) -> None:
    assert list(commands_in(text)) == commands


def test_what_comes_before_is_told_before_the_rest_is_looked_at() -> None:
    commands = commands_in("ls; rm x; echo $(date); pwd")
    assert list(commands) == [["ls"], ["rm", "x"], None]


@pytest.mark.parametrize(
    "text",
    [
        "ls > out",
        "ls >> out",
        "ls >| out",
        "ls 2> err",
        "ls >&3",
        "ls &> out",
        "ls >/dev/null2",
        "ls > '/dev/null'",
        "ls > $OUT",
        "ls >",
        "echo $(rm x)",
        'echo "$(rm x)"',
        "echo `rm x`",
        'echo "`rm x`"',
        "echo ${X:=y}",
        "echo $'a'",
        'echo $"a"',
        "cat <(rm x)",
        "tee >(rm x)",
        "cat << END\nEND",
        "cat <<< x",
        "cat <>x",
        "cat <&3",
        "cat <",
        "cat < < x",
        "cat <\nx",
        "(ls)",
        "f() { ls; }",
        "ls &",
        "ls & rm x",
        "echo 'a",
        'echo "a',
        "echo a\\",
        'echo "a\\',
        "echo " + "a" * MAX_COMMAND_LENGTH,
    ],
)
def test_what_is_not_understood_is_given_up(text: str) -> None:
    assert list(commands_in(text))[-1] is None


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash to compare with")
@given(st.text("ab \t'\"\\#2;|&<>\n$", max_size=12).map(lambda rest: f"say {rest}"))
@example("say \"a\\\nb\" 'c\\' d")
@example("say a#b #c\nsay d")
@example("say 2 >/dev/null 2>&1")
def test_a_shell_sees_the_same_words(text: str) -> None:
    """Where ours gives up, or something stands for what we cannot know, there is nothing to compare."""
    [words, *others] = list(commands_in(text))
    if words is None or others or any(EXPANSION in word for word in words) or "<" in text or "|" in text:
        return
    script = 'say() { printf "%s\\0" say "$@" >&9; }\n' + text
    done = subprocess.run(["bash", "-c", f"exec 9>&1\n{script}"], capture_output=True, check=False, text=True)
    if done.returncode == 0:
        assert done.stdout.split("\0")[:-1] == words
