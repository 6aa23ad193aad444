"""Which files run together: a file means what the programs mean that import it.

This is the one place that decides whether `import tensorflow` means TensorFlow 1, in
which files, and whether a program needs the v1 behaviour and Keras 2.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from hookbridge import errors
from hookbridge.old_programs.reading.bound_names import canonical, imports
from hookbridge.old_programs.reading.evidence import Evidence, Use
from hookbridge.old_programs.reading.imports import folders_above, imported, link
from hookbridge.old_programs.reading.modules import (
    Module,
    Unread,
    find_files,
    read_module,
)
from hookbridge.old_programs.reading.search_path import added_folders

# Names may come through as many modules.
_MAX_LINKS = 10


@dataclass(frozen=True)
class Meaning(Evidence):
    """What a program means by TensorFlow: the evidence of all its files.

    Its `old` shows TensorFlow 1 for sure; files without evidence of their own mean it
    too then.
    """

    @property
    def is_of_v1(self) -> bool:
        """Whether models and layers of the program are those of a graph."""
        return bool(self.old or self.needs_v1 or self.switch or self.estimator)

    @property
    def v1(self) -> Use | None:
        """Why the v1 behaviour has to be switched on; None if it has not."""
        return self.old or (None if self.switch else self.needs_v1)

    def targets_tf1(self, file: Evidence) -> bool:
        """Whether `import tensorflow` in a file of the program means TensorFlow 1."""
        return shows_tf1(file) or (self.old is not None and file.new is None)


def shows_tf1(file: Evidence) -> bool:
    """Whether the file itself shows TensorFlow 1."""
    return bool(file.old or file.pin or (file.leftover and not file.new))


def of_files(files: Iterable[Evidence], v1: bool = False) -> Meaning:
    """The meaning of a program."""
    files = list(files)
    result = Meaning(
        **_first_uses(files),
        written=frozenset().union(*(file.written for file in files)),
        removed=frozenset().union(*(file.removed for file in files)),
    )
    if result.keras2 is None and (result.is_of_v1 or v1):
        # The models and layers of a graph are those of Keras 2.
        return replace(result, keras2=result.keras)
    return result


def _first_uses(files: Sequence[Evidence]) -> dict[str, Use | None]:
    """The first use of each kind; whatever shows TensorFlow 1 is one of `old`."""
    names = [field.name for field in fields(Evidence)]
    kinds = [name for name in names if name not in ("written", "removed")]
    uses = {kind: [getattr(file, kind) for file in files] for kind in kinds}
    uses["old"] = [e.old or e.pin or e.leftover for e in files if shows_tf1(e)]
    return {kind: next(filter(None, some), None) for kind, some in uses.items()}


def read_program(files: Sequence[str], roots: Sequence[str]) -> list[Module]:
    """The main file, then the modules that it imports from the user's own folders.

    A module that cannot be parsed is left out: importing it later shows the error.
    """
    main, *others = map(read_module, files)
    if isinstance(main, Unread):
        raise errors.InvalidArgumentError(
            f"Received the program {files[0]!r}; expected Python source: {main.reason}."
        )
    modules = {m.path: m for m in (main, *others) if not isinstance(m, Unread)}
    return Programs(list(modules.values()), lambda module: roots).modules


@dataclass(frozen=True)
class Place:
    """Where a module stands in the programs that it is a part of."""

    meaning: Meaning  # what they mean by TensorFlow
    # The same, for a main file without the other programs that import it.
    of_main: Meaning
    targets_tf1: bool  # whether `import tensorflow` means TensorFlow 1 in the module
    # The modules of the programs that it imports, by dotted name.
    own: Mapping[str, Module]
    is_main: bool  # whether it is the main file of one
    is_run: bool  # whether it is that and does something when it runs
    # Canonical names that it imports from TensorFlow, and that nothing uses.
    unused: frozenset[str] = frozenset()


class Programs:
    """The programs that some files are parts of, with the modules that they import.

    A file that no other file imports, or that runs as a script, is the main file of a
    program; the files that it imports are the rest of it. `roots` gives the folders in
    which a file's own modules may be. Each module is read once.
    """

    def __init__(
        self,
        modules: Sequence[Module],
        roots: Callable[[Module], Sequence[str]] = lambda m: folders_above(m.file),
    ) -> None:
        self.given: list[Module] = list(modules)
        self.modules: list[Module] = list(modules)
        self._roots = roots
        # What the modules put into `sys.path` holds for all of them.
        self._added: dict[str, None] = {}
        # A file that cannot be read has no module.
        self._by_path: dict[str, Module | None] = {m.path: m for m in modules}
        self._imports: dict[Module, dict[str, Module]] = {}
        for module in self.given:
            self._added.update(dict.fromkeys(added_folders(module)))
        for module in self.modules:  # grows on the way
            self._imports[module] = dict(self._imported(module))
        self._link()
        self._of: dict[Module, list[Meaning]] = {}
        self._of_main: dict[Module, Meaning] = {}
        # Module -> the modules of the programs that it is a part of.
        self._beside: dict[Module, set[Module]] = {}
        for main in self._mains():
            parts = self._reached(main)
            of_main = of_files(part.evidence for part in parts)
            self._of_main[main] = of_main
            for part in parts:
                self._of.setdefault(part, []).append(of_main)
                self._beside.setdefault(part, set()).update(parts)

    def _link(self) -> None:
        """Gives each module the meaning of the names that it has from the others."""
        for _ in range(_MAX_LINKS):
            changed = [link(module, own) for module, own in self._imports.items()]
            if not any(changed):
                return

    def _mains(self) -> list[Module]:
        """The files that no other file imports, and the scripts."""
        imported_ones = {
            other
            for module, own in self._imports.items()
            for other in own.values()
            if other is not module
        }
        return [m for m in self.modules if m not in imported_ones or is_script(m)]

    def roots(self, module: Module) -> list[str]:
        """The folders in which the modules that a file imports are looked for."""
        return [*self._roots(module), *self._added]

    def _imported(self, module: Module) -> Iterator[tuple[str, Module]]:
        """The own modules that a file imports; each is read when it is first seen."""
        roots = self.roots(module) if module.file else ()
        for name, file in imported(module, roots) if module.file else ():
            path = os.path.realpath(file)
            if path not in self._by_path:
                part = read_module(file)
                self._by_path[path] = part if isinstance(part, Module) else None
                if isinstance(part, Module):
                    self.modules.append(part)
                    self._added.update(dict.fromkeys(added_folders(part)))
            if (module_of_file := self._by_path[path]) is not None:
                yield name, module_of_file

    def _reached(self, main: Module) -> list[Module]:
        modules = {main: None}
        waiting = [main]
        while waiting:
            for module in self._imports[waiting.pop()].values():
                if module not in modules:
                    modules[module] = None
                    waiting.append(module)
        return list(modules)

    def _does_something(self, main: Module) -> bool:
        """Whether a main file, or a module that it imports, does more than define."""
        return does_something(main) or any(
            part.evidence.tensorflow and runs_statements(part)
            for part in self._reached(main)
        )

    def place(self, module: Module) -> Place:
        """Where a module stands in its programs."""
        is_main = module in self._of_main
        is_run = is_main and self._does_something(module)
        meanings = self._of.get(module) or [of_files([module.evidence])]
        # They mean TensorFlow 1, if one of them does.
        meant = next((one for one in meanings if one.old), meanings[0])
        of_main, own = self._of_main.get(module, meant), self._imports[module]
        old = meant.targets_tf1(module.evidence)
        # Files that were not read may import from one that only defines.
        unused = frozenset(self._unused(module) if is_run or not is_main else ())
        return Place(meant, of_main, old, own, is_main, is_run, unused)

    def _unused(self, module: Module) -> Iterator[str]:
        """The names of TensorFlow that a file imports and no file of its programs uses.

        Other files may import them from this one.
        """
        others = self._beside.get(module, set()) - {module}
        for bound, full in module.unused.items():
            said = (other.words | imported_names(other) for other in others)
            if not any(bound in words for words in said):
                yield canonical(full)


def read_programs(
    paths: Iterable[str | os.PathLike[str]],
) -> tuple[Programs, list[Unread]]:
    """Reads files and folders, and the modules that they import."""
    paths = list(paths)
    files = [read_module(path) for path in find_files(paths)]
    modules = [file for file in files if isinstance(file, Module)]
    unread = [file for file in files if isinstance(file, Unread)]
    unread += [cell for module in modules for cell in module.unread_cells]
    tops = {os.path.realpath(path) for path in paths if os.path.isdir(path)}
    # A file that is given by its name is run: Python looks in its folder first.
    mains = [os.path.dirname(os.path.realpath(p)) for p in paths if os.path.isfile(p)]

    def roots(module: Module) -> list[str]:
        return list(dict.fromkeys([*mains, *folders_above(module.file, tops)]))

    return Programs(modules, roots), unread


def imported_names(module: Module) -> set[str]:
    """The last parts of what a file imports, such as `rotate` of `own.rotate`."""
    found = (one for node in module.nodes for one in imports(node))
    return {one.full.rpartition(".")[2] for one in found}


def is_script(module: Module) -> bool:
    """Whether a file runs by itself: a notebook, or one that asks for `__main__`."""
    return module.notebook is not None or any(
        _called(statement).endswith("app.run")
        or (isinstance(statement, ast.If) and "__main__" in ast.unparse(statement.test))
        for statement in module.tree.body
    )


def _called(statement: ast.stmt) -> str:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return ast.unparse(call.func) if isinstance(call, ast.Call) else ""


def does_something(module: Module) -> bool:
    """Whether a file does more than define names and settings when it runs."""
    return is_script(module) or runs_statements(module)


def runs_statements(module: Module) -> bool:
    """Whether an import of a file does more than define names and settings."""
    needs_v1 = module.evidence.needs_v1
    for statement in module.tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        if isinstance(statement, ast.With | ast.For | ast.While):
            return True
        last = statement.end_lineno or statement.lineno
        if needs_v1 is not None and statement.lineno <= needs_v1.line <= last:
            return True
        if name := _called(statement):
            is_setting = "DEFINE_" in name or name.endswith("set_verbosity")
            imported_one = module.names.bound.get(name.partition(".")[0], "tensorflow")
            if imported_one.startswith("tensorflow") and not is_setting:
                return True
    return False
