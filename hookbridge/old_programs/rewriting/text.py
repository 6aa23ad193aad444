"""Rewrites the text of one file."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hookbridge import errors
from hookbridge.old_programs.reading.one_file.modules import Module, why
from hookbridge.old_programs.reading.whole_programs.programs import Programs
from hookbridge.old_programs.rewriting.engine.module import rewrite_module
from hookbridge.old_programs.rewriting.engine.results import Rewritten
from hookbridge.old_programs.rewriting.engine.rule import RewriteRule, chosen
from hookbridge.old_programs.rewriting.registry import REWRITES
from hookbridge.tf1_names.target import NEWEST, Target


def rewrite(
    source: str,
    *,
    target: str = NEWEST,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    rules: Sequence[RewriteRule] = REWRITES,
) -> Rewritten:
    """Move the code of one file to a newer TensorFlow.

    Nothing is executed and TensorFlow is not imported. Formatting is kept; a second
    rewrite changes nothing. The file is taken for a whole program: what other files say
    is not known here.

    Args:
      source: Python code.
      target: the version of TensorFlow that it has to run on.
      only: names of the rules to apply; empty for all.
      skip: names of rules that are left out.
      rules: the rules to choose from; they may include your own.

    Returns:
      The new text, what was done and what is left.

    Raises:
      errors.InvalidArgumentError: the code cannot be parsed, or a rule or the target
        is not known.
    """
    chosen_rules, adds_comments = chosen(rules, only, skip)
    names = Target(target)
    try:
        module = Module(source)
        in_program = Programs([module]).in_program(module)
        return rewrite_module(
            module, in_program, names, chosen_rules, adds_comments, {}
        )
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        reason = why(e) if isinstance(e, SyntaxError) else f"{type(e).__name__}: {e}"
        raise errors.InvalidArgumentError(
            f"Received code that cannot be parsed; expected Python 3: {reason}."
        ) from e
