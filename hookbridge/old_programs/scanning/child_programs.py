"""Files of TensorFlow 1 that a program starts as processes of their own."""

from __future__ import annotations

import ast
import itertools
import os
import re
from collections.abc import Iterator

from hookbridge.old_programs.reading.one_file.modules import Module, read_module
from hookbridge.old_programs.reading.whole_programs.meaning import meaning_of
from hookbridge.old_programs.reading.whole_programs.programs import Programs
from hookbridge.old_programs.scanning.findings import Finding, finding_at

_PYTHON = re.compile(r"(?:.*/)?python[\d.]*$")
_IN_SHELL = re.compile(r"\bpython[\d.]*(?:\s+-\w+)*\s+([\w./-]+\.py)\b")
_SHELLS = ("os.system", "os.popen", "subprocess.")


def child_programs(module: Module, programs: Programs) -> Iterator[Finding]:
    """Yield a finding for each command that starts such a file with Python.

    The process that it starts gets TensorFlow as it is, since it is another one than
    that of `hookbridge run`.
    """
    for node in module.nodes:
        for name in _started_files(module, node):
            own_folder = os.path.dirname(module.path)
            folders = (own_folder, *programs.roots(module), os.getcwd())
            paths = (os.path.join(folder, name) for folder in folders)
            file = next(filter(os.path.isfile, paths), None)
            child = read_module(file) if file else None
            if isinstance(child, Module) and _is_of_tf1(child):
                way = f"`hookbridge run {name}` instead of `python {name}`"
                yield finding_at(module, node, "CHILD_PROGRAM", name, way)


def _started_files(module: Module, node: ast.AST) -> Iterator[str]:
    """Yield the Python files that a command starts: a list, or a shell's text."""
    if isinstance(node, ast.List | ast.Tuple) and node.elts:
        yield from _in_list(node.elts, module)
    elif isinstance(node, ast.Call) and node.args:
        function = module.names.through_program(node.func) or ""
        if function.startswith(_SHELLS) and not isinstance(node.args[0], ast.List):
            for text in _texts(node.args[0]):
                yield from _IN_SHELL.findall(text)


def _in_list(words: list[ast.expr], module: Module) -> Iterator[str]:
    """Yield the file that Python runs in a command of words, if it is one."""
    first, *arguments = words
    if _is_python(first, module):
        files = (text for argument in arguments for text in _texts(argument))
        yield from itertools.islice((text for text in files if text.endswith(".py")), 1)


def _is_python(node: ast.expr, module: Module) -> bool:
    """Return whether the first word of a command is Python."""
    if module.names.through_program(node) == "sys.executable":
        return True
    return any(map(_PYTHON.match, _texts(node)))


def _texts(node: ast.AST) -> list[str]:
    """Return the strings in an expression."""
    constants = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
    return [value for value in constants if isinstance(value, str)]


def _is_of_tf1(child: Module) -> bool:
    """Return whether a file needs what `hookbridge run` restores."""
    meaning = meaning_of([child.evidence])
    estimator = meaning.estimator
    has_old_one = estimator and not estimator.name.startswith("hookbridge")
    return bool(meaning.why_tf1 or meaning.why_v1 or has_old_one)
