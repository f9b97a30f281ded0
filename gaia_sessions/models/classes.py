"""The models of the record: one for each type of ``session.record_types``.

They are made when this module is imported, so a type checker cannot see their fields here: ``classes.pyi`` has them, as
``scripts/render_models`` writes it. A field must never be added by hand, neither here nor there.
"""

from gaia_sessions.session import record_types

from .building import End, Interruption, Phase, RunModel, SessionModel, TodoStatus, model_of

__all__ = [
    "Compaction",
    "Denial",
    "End",
    "HostProcess",
    "Interruption",
    "LastError",
    "Move",
    "Phase",
    "Run",
    "Session",
    "Todo",
    "TodoStatus",
    "Tools",
    "Usage",
    "Waiting",
    "Workflow",
    "Worktree",
]

Move = model_of(record_types.Move, "Move")
LastError = model_of(record_types.LastError, "LastError")
Denial = model_of(record_types.Denial, "Denial")
HostProcess = model_of(record_types.HostProcess, "HostProcess")
Workflow = model_of(record_types.Workflow, "Workflow")
Usage = model_of(record_types.Usage, "Usage")
Worktree = model_of(record_types.Worktree, "Worktree")
Waiting = model_of(record_types.Waiting, "Waiting")
Run = model_of(record_types.Run, "Run", RunModel)
Tools = model_of(record_types.Tools, "Tools")
Todo = model_of(record_types.Todo, "Todo")
Compaction = model_of(record_types.Compaction, "Compaction")
Session = model_of(record_types.Record, "Session", SessionModel)
