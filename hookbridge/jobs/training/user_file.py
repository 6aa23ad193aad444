"""Loads a user's Python file and looks up names in it."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from hookbridge import errors
from hookbridge.adapters.guests import kinds
from hookbridge.ground.arguments import parameters_of, why_no_file, with_arguments


class UserLoader(SourceFileLoader):
    """Loads a file that belongs to no program that `hookbridge run` runs."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the source as it is now; Python caches no script either.

        A cached file counts as current if size and second of the source are the same.
        """
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def load_file(path: str, module_name: str | None = None) -> ModuleType:
    """Run a Python file as a module; its folder is importable, as Python does it.

    `file_text.check_file` says before whether it should be run.

    Args:
      path: the file, `NAME.py`.
      module_name: the name of the module; None for that of the file.

    Raises:
      errors.InvalidArgumentError: there is no such Python file.
    """
    if not os.path.isfile(path):
        raise errors.InvalidArgumentError(
            f"Received the file {path!r}, which {why_no_file(path)}; expected a Python "
            "file."
        )
    folder, name = os.path.split(os.path.abspath(path))
    stem, extension = os.path.splitext(name)
    stem = module_name or stem
    loader = UserLoader(stem, path)
    spec = importlib.util.spec_from_file_location(stem, path, loader=loader)
    if extension != ".py" or spec is None or spec.loader is None:
        raise errors.InvalidArgumentError(
            f"Received the file {path!r}; expected a Python file, `NAME.py`."
        )
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickles look up their module by name while it runs.
    sys.modules[stem] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as e:
        del sys.modules[stem]
        raise _raised(path, e) from e
    return module


def message_of(path: str, error: BaseException, command: str) -> str:
    """Return the message for an error: the user's traceback lines, then itself.

    Args:
      path: the user's file; lines of other files are left out.
      error: what it raised.
      command: the command that ran it, such as "train".
    """
    here = os.path.abspath(path)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if os.path.abspath(frame.filename) == here
    ]
    lines = ["Traceback (of your file only):\n", *traceback.format_list(frames)]
    ends = traceback.format_exception_only(error)
    return "".join(
        [*(lines if frames else []), f"hookbridge: {command}: ", *ends]
    ).rstrip()


def _raised(path: str, error: BaseException) -> errors.InvalidArgumentError:
    """Return the error of a user's file as one line that names the place."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [(frame.filename, frame.lineno) for frame in frames]
    if isinstance(error, SyntaxError):  # of this file, or of one that it imports
        places.append((error.filename or "", error.lineno))
    here = os.path.abspath(path)
    lines = [line for file, line in places if os.path.abspath(file) == here]
    where = f", line {lines[-1]}," if lines else ""
    return errors.InvalidArgumentError(
        f"The file {path!r}{where} raised {type(error).__name__}: {error}; expected "
        f"a file that can be imported. `python {path}` shows the full traceback."
    )


def find_function(module: ModuleType, name: str, *args: str, **named: str) -> Any:
    """Return a function that the file must have, and its arguments."""
    try:
        return with_arguments(name, getattr(module, name, None), *args, **named)
    except errors.InvalidArgumentError as e:
        raise errors.InvalidArgumentError(f"{module.__file__}: {e}") from e


def find_guests(module: ModuleType, name: str = "guests", **arguments: str) -> Any:
    """Return the file's hooks and callbacks: a list, or what a function returns.

    Args:
      module: the user's file, loaded.
      name: the name of the list or the function in it.
      **arguments: what the function may ask for, by the names of its parameters.

    Raises:
      errors.InvalidArgumentError: the file has no such name, or the function needs
        arguments that it does not get.
    """
    if not hasattr(module, name):
        raise errors.InvalidArgumentError(
            f"{module.__file__} has no `{name}`; expected a list of hooks and "
            f"callbacks, `{name} = [...]`, or a function that returns one."
        )
    value = getattr(module, name)
    # A single hook may be callable too; it is not a function that returns a list.
    is_guest = kinds.is_hook(value) or kinds.is_callback(value)
    if not callable(value) or is_guest:
        return value
    wanted = {k: v for k, v in arguments.items() if k in parameters_of(value)}
    try:
        return find_function(module, name, **wanted)(**wanted)
    except errors.InvalidArgumentError:
        raise
    except (Exception, SystemExit) as e:
        raise _raised(str(module.__file__), e) from e
