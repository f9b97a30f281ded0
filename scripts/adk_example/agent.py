"""The three agents and their tools: what each tool reads of the session, writes to it, and clears.

None clears a key, because the service has ``none_clears``. No draft is stored: it is in the conversation.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.adk.agents import Agent
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext

from .knowledge import THRESHOLD, USERS, Knowledge, prettified, relevance, text_of, type_of
from .script import Heard, Script, call, delegate, say

if TYPE_CHECKING:
    from google.genai.types import Part

ROOT, DOMAINS, DOCUMENTS = "agent_root", "subagent_domain_lifecycle", "subagent_document_processor"
MOST_ATTEMPTS = 3

STATE_KEYS = {
    "user_id": "str",
    "user_name": "str",
    "name_attempts": "int",
    "intent": "any",
    "domain_id": "any",
    "intent_result": "any",
    "url": "any",
    "url_type": "any",
    "url_result": "any",
}
"""The agreed keys: the users' document asks for an agreement before any other key."""

FOLDER = Path(os.environ.get("ADK_EXAMPLE", ".adk"))
"""The folder of the sessions, the domains and facts, and the ID of the command line's session."""

knowledge = Knowledge(FOLDER / "knowledge.json")


def clear(context: ToolContext, *keys: str) -> None:
    for key in keys:
        context.state[key] = None


# The tools of the root agent.


def check_name(name: str, tool_context: ToolContext) -> dict[str, Any]:
    """Finds out who the user is. After three unknown names, nobody else is asked."""
    state, user_id = tool_context.state, USERS.get(name.strip().casefold())
    if state.get("name_attempts", 0) >= MOST_ATTEMPTS:
        return {"status": "blocked"}
    if user_id is None:
        state["name_attempts"] = state.get("name_attempts", 0) + 1
        return {"status": "blocked" if state["name_attempts"] >= MOST_ATTEMPTS else "unknown"}
    state["user_id"], state["user_name"] = user_id, name.strip().title()
    return {"status": "known", "name": state["user_name"]}


def begin_domain(intent: str, tool_context: ToolContext, domain_id: int | None = None) -> dict[str, Any]:
    """Writes what the user wants of a domain; to update one, it must be their own."""
    owned = [domain["domain_id"] for domain in knowledge.domains(tool_context.state["user_id"])]
    if intent == "update_domain" and domain_id not in owned:
        return {"status": "error", "reason": f"you have no domain {domain_id}"}
    tool_context.state["intent"] = intent
    if domain_id is not None:
        tool_context.state["domain_id"] = domain_id
    return {"status": "ok", "agent": DOMAINS}


def begin_url(url: str, tool_context: ToolContext) -> dict[str, Any]:
    """Writes the page to look at."""
    tool_context.state["url"] = url
    return {"status": "ok", "agent": DOCUMENTS}


def fetch_domains(tool_context: ToolContext) -> dict[str, Any]:
    """Returns the domains of the user."""
    return {"domains": knowledge.domains(tool_context.state["user_id"])}


_CAN = "Say create a domain, update domain N, or send a link."


def decide_root(heard: Heard) -> list[Part]:
    if heard.said is not None:
        return [_wanted(heard.said, is_known="user_id=user-" in heard.instruction)]
    if "reason" in heard.result:
        return [say(f"That cannot be: {heard.result['reason']}.")]
    if heard.tool == "check_name":
        answers = {
            "known": f"Hello {heard.result.get('name')}. {_CAN}",
            "unknown": "I do not know this name. Please tell me another.",
            "blocked": "Those were too many names. Please leave, and come again.",
        }
        return [say(answers[heard.result["status"]])]
    if heard.tool in {"begin_domain", "begin_url"}:
        return [delegate(heard.result["agent"])]
    if heard.tool == "fetch_domains":
        names = [f"{domain['domain_id']} {domain['name']}" for domain in heard.result["domains"]]
        return [say(f"Your domains: {', '.join(names) or 'none yet'}. {_CAN}")]
    return [call("fetch_domains")]  # a sub-agent has handed back


def _wanted(said: str, *, is_known: bool) -> Part:
    if not is_known:
        return call("check_name", name=said)
    if url := re.search(r"https?://\S+", said):
        return call("begin_url", url=url[0])
    if update := re.search(r"update domain (\d+)", said.casefold()):
        return call("begin_domain", intent="update_domain", domain_id=int(update[1]))
    return call("begin_domain", intent="create_domain") if "create" in said.casefold() else call("fetch_domains")


# The tools of subagent_domain_lifecycle.


def read_task(tool_context: ToolContext) -> dict[str, Any]:
    """Returns what the root agent left in the session, with the domain as it is."""
    state = tool_context.state
    task = {key: state.get(key) for key in ("user_id", "intent", "domain_id")}
    owned = knowledge.domains(state["user_id"])
    return {**task, "now": next((domain for domain in owned if domain["domain_id"] == task["domain_id"]), None)}


def prettify_domain(draft: str) -> dict[str, Any]:
    """Returns a name, a description and keywords for what the user wrote."""
    return prettified(draft)


def save_domain(name: str, description: str, keywords: list[str], tool_context: ToolContext) -> dict[str, Any]:
    """Saves what was approved, and marks the intent as processed."""
    state = tool_context.state
    if state.get("intent") is None:  # the process that saved it was killed before the answer
        return dict(state["intent_result"])
    intent, values = state["intent"], {"name": name, "description": description, "keywords": keywords}
    result = {"intent": intent, "domain_id": state.get("domain_id"), "status": "done"}
    try:
        result["domain_id"] = knowledge.save_domain(state["user_id"], state.get("domain_id"), values)
    except OSError as error:
        result |= {"status": "error", "reason": str(error)}
    state["intent_result"] = result
    clear(tool_context, "intent", "domain_id")
    return result


def cancel_domain(tool_context: ToolContext) -> dict[str, Any]:
    """Clears what the user no longer wants."""
    clear(tool_context, "intent", "domain_id")
    return {"status": "cancelled"}


def decide_domains(heard: Heard) -> list[Part]:
    if heard.said is not None:
        return [_of_draft(heard, heard.said)]
    result = heard.result
    if "reason" in result:
        return [say(f"That failed: {result['reason']}."), delegate(ROOT)]
    if heard.tool == "read_task":
        now = result["now"]
        shown = f"Now it is {now['name']}: {now['description']} ({', '.join(now['keywords'])}). " if now else ""
        return [say(f"{shown}Describe the domain as `name: what it is about`, or cancel.")]
    if heard.tool == "prettify_domain":
        words = ", ".join(result["keywords"])
        return [say(f"{result['name']}: {result['description']} ({words}). Approve, correct it, or cancel.")]
    if heard.tool is None:
        return [call("read_task")]
    done = (
        "You asked for cancellation."
        if heard.tool == "cancel_domain"
        else f"Saved as domain {result.get('domain_id')}."
    )
    return [say(done), delegate(ROOT)]


def _of_draft(heard: Heard, said: str) -> Part:
    draft, word = heard.latest("prettify_domain", since="read_task"), said.strip().casefold()
    if word == "cancel":
        return call("cancel_domain")
    return call("save_domain", **draft) if word == "approve" and draft else call("prettify_domain", draft=said)


# The tools of subagent_document_processor.


def process_link(tool_context: ToolContext) -> dict[str, Any]:
    """Reads the page of the session, writes its type, and finds what belongs to the user's domains."""
    state = tool_context.state
    url = state["url"]
    state["url_type"] = type_of(url)
    try:
        text = text_of(url)
    except OSError as error:
        return _processed(tool_context, "error", str(error))
    relevant = [domain for domain in knowledge.domains(state["user_id"]) if relevance(text, domain) >= THRESHOLD]
    if not relevant:
        return _processed(tool_context, "irrelevant", f"{url} does not correspond to any of your domains")
    facts = [
        {"fact": f"{domain['name']} is about {word}", "domain_id": domain["domain_id"]}
        for domain in relevant
        for word in domain["keywords"]
        if word in text
    ]
    return {"status": "ok", "domains": [domain["name"] for domain in relevant], "facts": facts}


def save_facts(facts: list[dict[str, Any]], tool_context: ToolContext) -> dict[str, Any]:
    """Saves the facts that the user picked, none if they refused."""
    state = tool_context.state
    knowledge.save_facts([{**fact, "user_id": state["user_id"], "source_url": state["url"]} for fact in facts])
    return _processed(tool_context, "saved" if facts else "refused", f"facts saved: {len(facts)}")


def cancel_link(tool_context: ToolContext) -> dict[str, Any]:
    """Clears what the user no longer wants."""
    clear(tool_context, "url", "url_type")
    return {"status": "cancelled", "reason": "you asked for cancellation"}


def _processed(context: ToolContext, status: str, reason: str) -> dict[str, Any]:
    state = context.state
    state["url_result"] = {"url": state["url"], "url_type": state["url_type"], "status": status}
    clear(context, "url", "url_type")
    return {"status": status, "reason": reason}


def decide_documents(heard: Heard) -> list[Part]:
    facts = heard.latest("process_link", since="").get("facts", [])
    shown = "; ".join(f"{number} {fact['fact']}" for number, fact in enumerate(facts, 1))
    if heard.said is not None:
        return [_of_facts(heard.said.strip().casefold(), facts, shown)]
    if heard.tool == "process_link" and heard.result["status"] == "ok":
        names = ", ".join(heard.result["domains"])
        return [say(f"Relevant to {names}. Facts: {shown}. Which of them shall I save? Numbers, none, or cancel.")]
    if heard.tool:
        return [say(f"Done with the link: {heard.result['reason']}."), delegate(ROOT)]
    return [call("process_link")]


def _of_facts(said: str, facts: list[dict[str, Any]], shown: str) -> Part:
    picked = [int(number) for number in re.findall(r"\d+", said)]
    if said == "cancel":
        return call("cancel_link")
    if not facts:  # the process that should read the page was killed
        return call("process_link")
    if said != "none" and not (picked and all(1 <= number <= len(facts) for number in picked)):
        return say(f"I did not understand. Facts: {shown}. Say their numbers, none, or cancel.")
    return call("save_facts", facts=[fact for number, fact in enumerate(facts, 1) if number in picked])


def failed(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext, error: Exception) -> dict[str, Any]:  # noqa: ARG001  # as ADK calls it
    """Handles an unexpected error of a tool: nothing of the task stays in the session, and the user is told."""
    clear(tool_context, *(key for key in ("intent", "domain_id", "url", "url_type") if key in tool_context.state))
    return {"status": "error", "reason": f"{tool.name} failed: {error}"}


def make_root_agent() -> Agent:
    """Returns new agents each time: an agent belongs to one tree."""
    domains = Agent(
        name=DOMAINS,
        description="Creates and updates the domains of a user.",
        model=Script(model="script", decide=decide_domains),
        tools=[read_task, prettify_domain, save_domain, cancel_domain],
        on_tool_error_callback=failed,
    )
    documents = Agent(
        name=DOCUMENTS,
        description="Finds facts in a page that a user sent.",
        model=Script(model="script", decide=decide_documents),
        tools=[process_link, save_facts, cancel_link],
        on_tool_error_callback=failed,
    )
    return Agent(
        name=ROOT,
        description="Knows who the user is, and what they want.",
        instruction="user_id={user_id?} name_attempts={name_attempts?}",
        model=Script(model="script", decide=decide_root),
        tools=[check_name, begin_domain, begin_url, fetch_domains],
        sub_agents=[domains, documents],
        on_tool_error_callback=failed,
    )


root_agent = make_root_agent()
