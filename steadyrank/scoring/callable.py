"""`callable`: any function of a query and its documents, `f(query, documents) -> scores`, one score a document and in their order.

The function gets the documents in the order of the presentation. One that takes a keyword `instruction` gets it there (or None);
for any other it is joined to the query. What it raises is not caught: it is the caller's own code, and its traceback says where.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from steadyrank import files
from steadyrank.errors import ConfigError, MissingDataError, RunError
from steadyrank.records import Scale
from steadyrank.scoring.base import PairScore
from steadyrank.scoring.batching import progress_bar
from steadyrank.scoring.outside import TEMPLATE, Ask, OutsideScorer, usable


class CallableScorer(OutsideScorer):
    """A function as a scorer.

    function: the function itself, `package.module:name`, or `path/to/file.py:name`. `name` may hold dots.
    """

    def __init__(
        self,
        function: Callable[..., Any] | str,
        *,
        name: str | None = None,
        scale: Scale = "grade",
        instruction_template: str = TEMPLATE,
        on_failure: str = "raise",
        floor: float | str | None = "below",
    ):
        self.function = find_function(function) if isinstance(function, str) else function
        if not callable(self.function):
            raise ConfigError(f"function {function!r} cannot be called; give f(query, documents) -> scores")
        called = str(getattr(self.function, "__qualname__", type(self.function).__qualname__))
        super().__init__(
            name=name or (function if isinstance(function, str) else called),
            scale=scale,
            instruction_template=instruction_template,
            on_failure=on_failure,
            floor=floor,
        )
        self._takes_instruction = _takes_instruction(self.function)

    @property
    def fingerprint(self) -> str:
        """The function's source where it can be read, else its name; what it calls is not seen."""
        try:
            body = inspect.getsource(self.function)
        except (OSError, TypeError):
            body = f"{getattr(self.function, '__module__', '')}:{self.name}"
        return files.fingerprint(["callable", body, self.scale, self.instruction_template, self.floor])

    def _answer(self, asks: Sequence[Ask], *, skip: bool, progress: bool) -> list[list[PairScore] | RunError]:
        answers: list[list[PairScore] | RunError] = []
        with progress_bar(progress) as bar:
            task = bar.add_task(self.name, total=len(asks))
            for ask in asks:
                answer = self._one(ask)
                if isinstance(answer, RunError) and not skip:
                    raise answer
                answers.append(answer)
                bar.advance(task)
        return answers

    def _one(self, ask: Ask) -> list[PairScore] | RunError:
        if not ask.places:
            return self._home(ask, [])
        documents = ask.documents
        if self._takes_instruction:
            values = self.function(ask.example.query, documents, instruction=ask.example.instruction)
        else:
            values = self.function(self.query_of(ask.example), documents)
        scores = _listed(values)
        if scores is None:
            return RunError(f"scorer {self.name!r}: {ask.name}: gave a {type(values).__name__}; it must give a list of numbers")
        if len(scores) != len(ask.places):
            return RunError(f"scorer {self.name!r}: {ask.name}: gave {len(scores)} scores for {len(ask.places)} documents")
        numbers = []
        for place, value in enumerate(scores):
            number = usable(value, self.scale)
            if isinstance(number, str):
                return RunError(f"scorer {self.name!r}: {ask.name}: score {place} {number}")
            numbers.append(number)
        return self._home(ask, numbers)


def find_function(spec: str) -> Callable[..., Any]:
    """The object that `package.module:name` or `path/to/file.py:name` names."""
    where, _, attribute = spec.rpartition(":")
    if not where or not attribute:
        raise ConfigError(f"function {spec!r} is no package.module:function and no path/to/file.py:function")
    found: Any = _file_module(where) if where.endswith(".py") else _module(where)
    for part in attribute.split("."):
        if not hasattr(found, part):
            known = ", ".join(sorted(name for name in vars(found) if callable(getattr(found, name)) and not name.startswith("_"))[:8])
            raise ConfigError(f"{where} has no {attribute!r}; it has: {known or 'no function'}")
        found = getattr(found, part)
    if not callable(found):
        raise ConfigError(f"{spec} is a {type(found).__name__}, not a function")
    return found


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise  # the module is there; something that it imports is not
        raise MissingDataError(f"module {name!r} is not installed here; for a file, give path/to/file.py:function") from error


def _file_module(path: str) -> Any:
    file = Path(path).expanduser()
    if not file.is_file():
        raise MissingDataError(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} cannot be read as Python")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _takes_instruction(function: Callable[..., Any]) -> bool:
    try:
        parameter = inspect.signature(function).parameters.get("instruction")
    except (TypeError, ValueError):  # a builtin
        return False
    return parameter is not None and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY


def _listed(values: Any) -> list[Any] | None:
    """The values of a list, tuple, array or tensor of one axis; None for anything else (a dict or a set has no order to trust)."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    return list(values) if isinstance(values, (list, tuple)) else None
