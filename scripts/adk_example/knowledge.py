"""What the tools work with: the users, their domains and facts in one file, and pages that need no network."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

USERS = {"ada": "user-1", "grace": "user-2"}
THRESHOLD = 0.5
"""The part of a domain's keywords that a relevant text must have."""

SHORTEST_KEYWORD = 4


class Knowledge:
    """The domains and facts of all users, in the file ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def _read(self) -> dict[str, Any]:
        return json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {"domains": [], "facts": []}

    def domains(self, user_id: str) -> list[dict[str, Any]]:
        return [domain for domain in self._read()["domains"] if domain["user_id"] == user_id]

    def save_domain(self, user_id: str, domain_id: int | None, values: dict[str, Any]) -> int:
        """Returns the domain's ID, a new one without ``domain_id``; raises ``OSError`` for the name "broken"."""
        if values["name"].casefold() == "broken":
            raise OSError("the storage of domains does not answer")
        found = self._read()
        number = len(found["domains"]) + 1 if domain_id is None else domain_id
        others = [domain for domain in found["domains"] if domain["domain_id"] != number]
        found["domains"] = [*others, {"domain_id": number, "user_id": user_id, **values}]
        self._write(found)
        return number

    def save_facts(self, facts: list[dict[str, Any]]) -> None:
        found = self._read()
        found["facts"] += facts
        self._write(found)

    def facts(self) -> list[dict[str, Any]]:
        return list(self._read()["facts"])

    def _write(self, found: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(found, indent=2), encoding="utf-8")


def type_of(url: str) -> str:
    """Returns ``pdf``, ``youtube`` or ``page``."""
    return "pdf" if url.casefold().endswith(".pdf") else "youtube" if "youtu" in url else "page"


def text_of(url: str) -> str:
    """Returns the words of the path instead of a page; raises ``OSError`` for a URL with "broken" in it."""
    if "broken" in url:
        raise OSError(f"{url} does not answer")
    path = url.partition("://")[2].partition("/")[2]
    return " ".join(re.findall(r"[a-z]+", path.casefold()))


def relevance(text: str, domain: dict[str, Any]) -> float:
    keywords = domain["keywords"]
    return sum(word in text for word in keywords) / len(keywords) if keywords else 0.0


def prettified(draft: str) -> dict[str, Any]:
    """Returns name, description and keywords from a draft ``name: words``."""
    name, _, words = draft.partition(":")
    return {
        "name": name.strip().title(),
        "description": words.strip().capitalize() or name.strip().capitalize(),
        "keywords": sorted(
            {word.strip(".,").casefold() for word in (words or name).split() if len(word) >= SHORTEST_KEYWORD}
        ),
    }
