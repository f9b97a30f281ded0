"""A root agent and two sub-agents on Google ADK that hand each other work in a durable session: see README.md."""

from . import agent as agent  # ADK's servers look here for ``root_agent``
