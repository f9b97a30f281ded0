"""Table tests: one test walks all rows of a table and reports every row that fails."""

from __future__ import annotations

import inspect
from functools import wraps
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Test = Callable[..., None]

_SHOWN = 200  # characters of a row in the report of a failure


def table(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Calls the test once for each row, which sets its parameters ``names``. Several tables give their product.

    Unlike ``pytest.mark.parametrize``, this is one test. All rows share the fixtures, so a row that writes needs its
    own name or folder. All rows run, and the failures are raised together.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    arguments = [dict(zip(keys, row if len(keys) > 1 else (row,), strict=True)) for row in rows]
    assert arguments, f"the table of {', '.join(keys)} is empty"

    def decorate(test: Test) -> Test:
        inner = getattr(test, "__rows__", None)
        call = test.__wrapped__ if inner else test  # type: ignore[attr-defined]  # set below
        rows = [{**one, **other} for one, other in product(arguments, inner)] if inner else arguments

        @wraps(call)
        def walk(**fixtures: Any) -> None:
            failed = [fault for row in rows if (fault := _fault(call, fixtures, row))]
            if len(failed) == 1:
                raise failed[0]
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(rows)} rows failed", failed)

        signature = inspect.signature(call)
        left = [one for name, one in signature.parameters.items() if name not in rows[0]]
        walk.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]  # pytest asks for it
        walk.__rows__ = rows  # type: ignore[attr-defined]  # for a further table
        return walk

    return decorate


def _fault(test: Test, fixtures: dict[str, Any], row: dict[str, Any]) -> Exception | None:
    try:
        test(**fixtures, **row)
    except Exception as error:  # noqa: BLE001  # it is reported with the others
        fault = error
    except (pytest.fail.Exception, pytest.skip.Exception) as error:  # not subclasses of Exception
        fault = AssertionError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__)
    else:
        return None
    text = ", ".join(f"{name}={value!r}" for name, value in row.items())
    fault.add_note(f"row: {text if len(text) <= _SHOWN else text[:_SHOWN] + '...'}")
    return fault
