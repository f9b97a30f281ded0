"""``state``: the keys that agents hand each other."""

from __future__ import annotations

import json
from shlex import quote
from typing import TYPE_CHECKING

import click

from gaia_sessions.cli.call import ID, IF_REVISION, declare, declare_group
from gaia_sessions.cli.exit_codes import EXIT_DONE, EXIT_NO
from gaia_sessions.cli.option_values import STDIN, json_value, read_stdin
from gaia_sessions.cli.render.words import safe, safe_lines
from gaia_sessions.errors import UsageError
from gaia_sessions.jsonio.strict import DOCUMENT_LIMIT, loads
from gaia_sessions.session.shared_keys import Delta

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.api.keys import SharedKeys
    from gaia_sessions.cli.call import Call
    from gaia_sessions.jsonio.strict import Json

_KEY = click.argument("key", metavar="KEY")
_LONGEST = 1000


@declare_group(
    "state set agent-123 intent create_domain",
    "state get agent-123 intent || echo unset",
    "state unset agent-123 intent domain_id",
)
def command(call: Call) -> None:
    """Store what agents hand each other: set, get, unset, incr.

    A key belongs to its session. If the session has an app and a user, all sessions of the app share app:KEY, and all
    sessions of this user share user:KEY.
    """


@declare("state get agent-123 intent || echo unset", "state get agent-123 app:motd --json || echo unset")
@ID
@_KEY
def get(call: Call, agent_id: str, key: str) -> int:
    """Print the value of KEY: a text without quotes, else JSON.

    Invisible characters of a text are left out; --json prints the whole text.

    Exit codes: 0 the key is set, 1 not set.
    """
    session_id = call.session_id(agent_id)
    keys = call.sessions().state(session_id)
    _check_key(key, keys)
    value = keys["state"].get(key)
    is_set = key in keys["state"]
    document = {"agent_id": keys["agent_id"], "key": key, "set": is_set, "value": value}
    call.print_result(document, lambda: [*safe_lines(_text(value))] if is_set else [])
    return EXIT_DONE if is_set else EXIT_NO


def _check_key(key: str, keys: SharedKeys) -> None:
    """Raises ``InvalidInput`` for a key that the session cannot have: a script would wait for the key in vain."""
    owner = {name: keys[name] for name in ("app", "user") if keys[name] is not None}
    Delta(unset=[key]).parts({"agent_id": keys["agent_id"], **owner})  # type: ignore[typeddict-item]  # it reads only these keys


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@declare("state set agent-123 intent create_domain", """state set agent-123 tags --value-json '["infra"]'""")
@ID
@_KEY
@click.argument("value", required=False)
@click.option("--value-json", metavar="JSON", help="The value as JSON, instead of VALUE, which is text.")
@IF_REVISION
def set_(
    call: Call, agent_id: str, key: str, *, value: str | None, value_json: str | None, if_revision: int | None
) -> None:
    """Set KEY to a text, or to any value with --value-json."""
    if (value is None) == (value_json is None):
        name, _, typed = key.partition("=")
        example = f"{quote(safe(name, 80))} {quote(safe(typed, 80)) if typed else 'VALUE'}"
        raise UsageError("give either VALUE or --value-json", f"type gaia-sessions state set ID {example}")
    _change(
        call,
        agent_id,
        Delta({key: value if value_json is None else json_value(value_json, "--value-json")}),
        if_revision,
    )


@declare("state unset agent-123 intent domain_id")
@ID
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@IF_REVISION
def unset(call: Call, agent_id: str, keys: tuple[str, ...], *, if_revision: int | None) -> None:
    """Clear keys, whether they are set or not."""
    _change(call, agent_id, Delta(unset=keys), if_revision)


@declare("state incr agent-123 name_attempts", "state incr agent-123 app:visits --by 10")
@ID
@_KEY
@click.option("--by", metavar="N", type=int, default=1, help="Number to add.  [default: 1]")
@IF_REVISION
def incr(call: Call, agent_id: str, key: str, *, by: int, if_revision: int | None) -> None:
    """Add to the number of KEY, in one step, and print the sum.

    A key that is not set counts as 0.
    """
    session_id = call.session_id(agent_id, writes=True)
    keys = call.sessions().change_state(session_id, add={key: by}, if_revision=if_revision)
    call.print_result(keys, lambda: [_text(keys["state"][key])])


@declare("state delta agent-123 - < delta.json")
@ID
@click.argument("source", metavar="-")
@IF_REVISION
def delta(call: Call, agent_id: str, *, source: str, if_revision: int | None) -> None:
    """Set and clear several keys in one step, from standard input.

    \b
    {"set": {"url_type": "pdf"}, "unset": ["url"], "add": {"seen": 1}}

    Each part is optional. A delta that is refused changes nothing.
    """  # noqa: D301  # where click must not wrap
    if source != STDIN:
        raise UsageError(
            f"the delta comes from standard input, not from {source!r}",
            f"type gaia-sessions state delta ID {STDIN} < FILE",
        )
    given = loads(read_stdin(f"state delta {STDIN}", DOCUMENT_LIMIT, "the delta"), DOCUMENT_LIMIT)
    _change(call, agent_id, Delta.of_document(given), if_revision)


def _change(call: Call, agent_id: str, changes: Delta, if_revision: int | None) -> None:
    session_id = call.session_id(agent_id, writes=True)
    keys = call.sessions().change_state(
        session_id, changes.set, unset=changes.unset, add=changes.add, if_revision=if_revision
    )
    call.print_result(keys, lambda: [f"{session_id}: revision {keys['revision']}"])


@declare("state show agent-123", "state show agent-123 --json")
@ID
def show(call: Call, agent_id: str) -> None:
    """Show all keys that a session sees."""
    session_id = call.session_id(agent_id)
    keys = call.sessions().state(session_id)
    call.print_result(keys, lambda: [*_lines(keys)])


def _lines(keys: SharedKeys) -> Iterator[str]:
    for key, value in sorted(keys["state"].items()):
        yield f"{safe(key)}  {safe(json.dumps(value, ensure_ascii=False), _LONGEST)}"
    if not keys["state"]:
        yield "no keys"


command.add_command(set_, "set")
for one in (get, unset, incr, delta, show):
    command.add_command(one)
