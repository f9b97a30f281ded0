"""A table of settings files, and what is left of each after the hooks were installed and uninstalled.

This is the same bytes (``SAME``), other bytes (own entries or empty containers are gone) or no file (None).
A file that is refused has the end of its error instead.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import gaia_sessions
from gaia_sessions.install.executable import hook_program

SCRIPT = str(Path(gaia_sessions.__file__).parents[1] / "hooks" / "every_event.py")
PROGRAM = hook_program()[0]
SAME = object()


class Row(NamedTuple):
    """One file. left: what is left of it; unpermitted: what is left after an installation with ``report``."""

    data: bytes | None
    left: object = SAME
    unpermitted: object = SAME
    refused: str = ""
    host: str = "claude-code"


def to_json(value: object, indent: int | str | None = 2) -> bytes:
    return (json.dumps(value, indent=indent, ensure_ascii=False) + "\n").encode()


OTHER = {"type": "command", "command": "~/bin/notify 'done'", "timeout": 60}
OLD = {"type": "command", "command": "/usr/bin/python3 /opt/gaia_sessions/hooks/every_event.py", "timeout": 5}
NAMESAKE = {"type": "command", "command": "python3 $CLAUDE_PROJECT_DIR/.claude/hooks/subagent_stop.py"}
OTHERS = {
    "Stop": [{"hooks": [OTHER]}],
    "PreToolUse": [{"matcher": "Bash", "hooks": [OTHER, NAMESAKE]}, {"hooks": []}],
    "Notification": [],
}
BY_HAND = {"type": "command", "command": f"/usr/bin/python3 {SCRIPT}", "timeout": 5}
BY_HAND_TEXT = json.dumps(BY_HAND).encode()
MIXED = {"type": "command", "command": f"notify-my-phone --done && /usr/bin/python3 {SCRIPT}"}
WIRED_BY_HAND = {"SubagentStop": [{"hooks": [BY_HAND]}], "Stop": [{"hooks": [OTHER, BY_HAND]}]}
LEFT_BY_HAND = {"Stop": [{"hooks": [OTHER]}]}
GONE = {"type": "command", "command": "python3 /gone/gaia_sessions/hooks/every_event.py"}
LEFT_OF_GONE = to_json({"hooks": LEFT_BY_HAND})
RULE = "Bash('/opt/my place/gaia-sessions' update *)"
PERMITTED = to_json({"permissions": {"allow": ["a", "b"]}})
OWN_ONLY = {"Stop": [{"hooks": [OLD]}]}
OWN_TWICE = {"Stop": [{"hooks": [OLD]}, {"hooks": [OTHER]}, {"hooks": [OLD, OTHER]}]}
OWN_REMOVED = {"Stop": [{"hooks": [OTHER]}, {"hooks": [OTHER]}]}
PRETTY = to_json({"model": "opus", "env": {"A": "1"}, "permissions": {"allow": ["Bash(ls *)"], "deny": []}})
COMMENTED = b"""// mine
{
  /* which one */ "model": "opus", // the large one
  "tools": ["a", /* b, */ "c"], // "hooks": {}
  "hooks": { // others
    "Stop": [
      // keep
      {"hooks": [{"type": "command", "command": "echo // no comment"}]} // last
    ] /* the end */
  } // of it
}
// bye
"""

NO_OBJECT = "must be a JSON object"

ROWS: dict[str, Row] = {
    "missing": Row(None),
    "empty": Row(b"", None),
    "blanks": Row(b" \n\t\r\n", None),
    "only a byte order mark": Row(b"\xef\xbb\xbf", None),
    "empty object": Row(b"{}", None),
    "empty object and newline": Row(b"{}\n", None),
    "empty object on two lines": Row(b"{\n}\n", None),
    "empty object with blanks": Row(b"  {  }  ", None),
    "two blanks": Row(PRETTY),
    "four blanks": Row(to_json(json.loads(PRETTY), 4)),
    "one blank": Row(to_json(json.loads(PRETTY), 1)),
    "tabs": Row(to_json(json.loads(PRETTY), "\t")),
    "mixed indentation": Row(b'{\n\t"a": 1,\n    "b": {\n  "c": []}\n }\n'),
    "no newline at the end": Row(PRETTY.rstrip()),
    "many newlines at the end": Row(PRETTY + b"\n\n\n"),
    "carriage returns": Row(PRETTY.replace(b"\n", b"\r\n")),
    "carriage returns, tabs": Row(to_json(json.loads(PRETTY), "\t").replace(b"\n", b"\r\n")),
    "byte order mark": Row(b"\xef\xbb\xbf" + PRETTY),
    "on one line": Row(to_json(json.loads(PRETTY), None)),
    "compact": Row(json.dumps(json.loads(PRETTY), separators=(",", ":")).encode()),
    "one member on one line": Row(b'{"a": 1}'),
    "one member, compact": Row(b'{"a":1}'),
    "blanks around everything": Row(b'\n{ "a" : [ 1 , 2 ] , "b" : { } }\n'),
    "members on shared lines": Row(b'{"a": 1,\n "b": 2, "c": 3\n}'),
    "every kind of value": Row(to_json({"n": None, "t": True, "f": 1.5e-7, "s": '\\"/\n\u2028é🐾', "a": [[], {}]})),
    "numbers in odd spellings": Row(b'{"a": 1.0, "b": 1E+2, "c": -0, "d": ' + b"9" * 5000 + b"}"),
    "escapes in odd spellings": Row(rb'{"\u0061": "\/\u00e9\ud83d\ude00", "b": "\ud800"}'),
    "keys and texts that look like structure": Row(to_json({"{": "}", "],": '[{"hooks":', "//": "/* x */"})),
    "the same unknown key twice": Row(b'{"a": 1, "a": 2}'),
    "nested deep": Row(b'{"a": ' + b"[" * 63 + b"]" * 63 + b"}"),
    "huge": Row(to_json({"a": ["x" * 1000] * 900})),
    "hooks of others": Row(to_json({"hooks": OTHERS, "model": "opus"})),
    "hooks of others, compact": Row(json.dumps({"hooks": OTHERS}, separators=(",", ":")).encode()),
    "hooks of others, on one line": Row(to_json({"z": 1, "hooks": OTHERS}, None)),
    "empty hooks": Row(to_json({"hooks": {}, "model": "opus"}), to_json({"model": "opus"})),
    "empty lists of events": Row(to_json({"hooks": {"Stop": []}}, None), None),
    "unknown events and shapes": Row(to_json({"hooks": {"NewEvent": [1, None, {"hooks": "x"}, {"hooks": [2]}]}})),
    "own entries": Row(to_json({"model": "opus", "hooks": OWN_ONLY}), to_json({"model": "opus"})),
    "own entries twice": Row(to_json({"hooks": OWN_TWICE}), to_json({"hooks": OWN_REMOVED})),
    "entries written by hand": Row(to_json({"hooks": WIRED_BY_HAND, "a": 1}), to_json({"hooks": LEFT_BY_HAND, "a": 1})),
    "only entries written by hand": Row(to_json({"hooks": {"SubagentStop": [{"hooks": [BY_HAND]}]}}, None), None),
    "an entry written by hand whose script is gone": Row(
        to_json({"hooks": {"Stop": [{"hooks": [OTHER, GONE]}]}}), LEFT_OF_GONE
    ),
    "an own rule written by hand": Row(to_json({"permissions": {"allow": ["a", RULE, "b"]}}), PERMITTED),
    "only an own rule": Row(to_json({"permissions": {"allow": [RULE]}}, None), None),
    "permissions of others": Row(PERMITTED),
    "empty permissions": Row(to_json({"permissions": {}, "a": 1}), unpermitted=to_json({"a": 1})),
    "only denied permissions": Row(
        to_json({"permissions": {"allow": [], "deny": ["a"]}}), unpermitted=to_json({"permissions": {"deny": ["a"]}})
    ),
    "a command that contains the hook": Row(to_json({"hooks": {"Stop": [{"hooks": [MIXED]}]}})),
    "all hooks disabled": Row(to_json({"disableAllHooks": True})),
    "comments": Row(COMMENTED, host="qwen-code"),
    "comments, carriage returns": Row(COMMENTED.replace(b"\n", b"\r\n"), host="qwen-code"),
    "comments, for another host": Row(COMMENTED, host="gemini-cli"),
    "a comment in an empty object": Row(b"{ // nothing yet\n}\n", host="gemini-cli"),
    "a comment after the last member": Row(b'{\n  "a": 1 // one\n}', host="qwen-code"),
    "a comment over two lines": Row(b'{"a": 1 /* one\n two */}', host="qwen-code"),
    "a comment in empty hooks": Row(b'{\n  "hooks": { // nothing yet\n  }\n}\n', host="gemini-cli"),
    "a comment in an empty event": Row(
        b'{\n  "hooks": {\n    "SessionEnd": [ /* none */ ]\n  }\n}\n', host="qwen-code"
    ),
    "a comment before an empty object": Row(b"// mine\n{}\n", host="gemini-cli"),
    "a comment beside an own entry": Row(
        b'{"hooks": {"SessionEnd": [{"hooks": [ /* mine */ %b]}]}}' % BY_HAND_TEXT,
        b'{"hooks": {"SessionEnd": [{"hooks": [ /* mine */]}]}}',
        host="qwen-code",
    ),
    "a comment in a group with an own entry": Row(
        b'{"hooks": {"SessionEnd": [{ /* mine */ "hooks": [%b]}]}}' % BY_HAND_TEXT,
        b'{"hooks": {"SessionEnd": [{ /* mine */ "hooks": []}]}}',
        host="qwen-code",
    ),
    "a comment between groups": Row(
        b'{"hooks": {"SessionEnd": [ /* mine */ {"hooks": [%b]}]}}' % BY_HAND_TEXT,
        b'{"hooks": {"SessionEnd": [ /* mine */]}}',
        host="qwen-code",
    ),
    "hooks of another file": Row(to_json({"hooks": {"Stop": [{"hooks": [OTHER]}]}}), host="codex"),
    "a string with many quotes that does not end": Row(
        b'{"a": "' + b'\\"' * 500_000, host="gemini-cli", refused="line 1 column 7: not JSON: no closing quote"
    ),
    "many comments that do not end": Row(
        b"{" + b"/* " * 300_000, host="gemini-cli", refused="line 1 column 2: not JSON: "
    ),
    "a comment that is only /*/": Row(b"{}/*/", host="gemini-cli", refused="line 1 column 3: not JSON: "),
    "comments that the host does not allow": Row(COMMENTED, refused="line 1 column 1: not JSON: a comment"),
    "an extra comma": Row(b'{"a": 1,}', refused="line 1 column 8: not JSON: a comma before the closing brace"),
    "torn": Row(b'{"hooks": {"Stop": [', refused="line 1 column 20: not JSON: this bracket is not closed"),
    "two documents": Row(b"{} {}", refused="line 1 column 4: not JSON: more than one value"),
    "a list": Row(b"[]", refused=NO_OBJECT),
    "null": Row(b"null\n", refused=NO_OBJECT),
    "not a number": Row(b'{"a": NaN}', refused="not JSON: JSON has no NaN"),
    "not UTF-8": Row(b'{"a": "\xff"}', refused="byte 7: not UTF-8"),
    "UTF-16": Row('{"a": 1}'.encode("utf-16"), refused="byte 0: not UTF-8"),
    "hooks twice": Row(b'{"hooks": {}, "hooks": {}}', refused="the same key twice in an object: 'hooks'"),
    "hooks that are a list": Row(b'{"hooks": []}', refused="'hooks' is an array, not an object"),
    "hooks that are null": Row(b'{"hooks": null}', refused="'hooks' is null, not an object"),
    "an event that is an object": Row(b'{"hooks": {"Stop": {}}}', refused="'Stop' is an object, not an array"),
    "an event twice": Row(b'{"hooks": {"Stop": [], "Stop": []}}', refused="the same key twice in an object: 'Stop'"),
    "a matcher twice": Row(
        b'{"hooks": {"Stop": [{"matcher": "a", "matcher": "b", "hooks": []}]}}',
        refused="the same key twice in an object: 'matcher'",
    ),
    "handlers twice": Row(
        b'{"hooks": {"Stop": [{"hooks": [], "hooks": [{"command": "beep"}]}]}}',
        refused="the same key twice in an object: 'hooks'",
    ),
    "permissions twice": Row(
        b'{"permissions": {}, "permissions": {"allow": []}}', refused="the same key twice in an object: 'permissions'"
    ),
    "grants twice": Row(
        b'{"permissions": {"allow": [], "allow": []}}', refused="the same key twice in an object: 'allow'"
    ),
    "nested too deep": Row(b"[" * 100_000, refused="nested deeper than 64"),
    "nested one too deep": Row(b'{"x":' + b"[" * 64 + b"]" * 64 + b"}", refused="nested deeper than 64"),
    "too huge": Row(b'{"a": "' + b"x" * (1 << 20) + b'"}', refused="is over the limit of 1048576 bytes"),
}

REFUSED = [row for row in ROWS.values() if row.refused]
TAKEN = [row for row in ROWS.values() if not row.refused]
