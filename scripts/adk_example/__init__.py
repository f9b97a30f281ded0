"""A root agent and two sub-agents on Google ADK that hand each other work in a durable session: see README.md."""

from . import agent as agent  # where ADK's servers look for ``root_agent``
