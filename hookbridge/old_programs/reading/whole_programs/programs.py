"""Which files run together: a file means what the programs mean that import it."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence

from hookbridge.old_programs.reading.one_file.modules import (
    Module,
    Unread,
    read_module,
)
from hookbridge.old_programs.reading.one_file.unequal_rows import Parameter
from hookbridge.old_programs.reading.whole_programs.gpu_blocks import called_on_gpu
from hookbridge.old_programs.reading.whole_programs.imported_files import (
    folders_above,
    imported_files,
    know,
    link,
    share_assigned,
)
from hookbridge.old_programs.reading.whole_programs.in_program import InProgram
from hookbridge.old_programs.reading.whole_programs.meaning import Meaning, meaning_of
from hookbridge.old_programs.reading.whole_programs.names_between import NamesBetween
from hookbridge.old_programs.reading.whole_programs.scripts import (
    does_something,
    is_script,
    is_test,
    runs_statements,
)
from hookbridge.old_programs.reading.whole_programs.search_path import (
    added_folders,
)
from hookbridge.tf1_names.old_values import OF_ARRAYS

# Names may come through as many modules.
_MAX_LINKS = 10
_CONFTEST = "conftest.py"
# Functions of NumPy that make arrays.
_OF_ARRAYS = frozenset(name.rpartition(".")[2] for name in OF_ARRAYS)


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
        # The folders that the modules put into `sys.path`, which hold for all of them.
        self.added: dict[str, None] = {}
        # A file that cannot be read has no module.
        self._by_path: dict[str, Module | None] = {m.path: m for m in modules}
        self._imports: dict[Module, dict[str, Module]] = {}
        for module in self.given:
            self.added.update(dict.fromkeys(added_folders(module)))
        for module in self.modules:  # grows on the way
            self._imports[module] = dict(self._imported_modules(module))
        self._link()
        self._of: dict[Module, list[Meaning]] = {}
        self._of_main: dict[Module, Meaning] = {}
        # The meanings of the programs whose processes start in a module.
        self._started: dict[Module, list[Meaning]] = {}
        self._loading_first: set[Module] = set()  # see `InProgram.loads_first`
        self._doing: dict[Module, bool] = {}  # what `_does_something` found
        # Module -> the modules of the programs that it is a part of.
        self._beside: dict[Module, set[Module]] = {}
        # Which names the files have from each other.
        self.names: NamesBetween = NamesBetween(
            self._imports, self._beside, self._only_defines
        )
        mains = self._mains()
        for main in mains:
            share_assigned(self.parts(main))
        for main in mains:
            parts = self.parts(main)
            of_main = meaning_of(part.evidence for part in parts)
            self._of_main[main] = of_main
            start = self._start(main)
            self._started.setdefault(start, []).append(of_main)
            if start is main and self._does_something(main):
                self._loading_first.update(self._loads_before(main))
            for part in parts:
                self._of.setdefault(part, []).append(of_main)
                self._beside.setdefault(part, set()).update(parts)

    def _link(self) -> None:
        """Give each module the meaning of the names that it has from the others."""
        for module, own_modules in self._imports.items():
            know(module, own_modules)
        for _ in range(_MAX_LINKS):
            changed = [
                link(module, own_modules)
                for module, own_modules in self._imports.items()
            ]
            if not any(changed):
                return

    def _mains(self) -> list[Module]:
        """Return the files that no other file imports, and the scripts."""
        imported_ones = {
            module_used
            for module, own_modules in self._imports.items()
            for module_used in own_modules.values()
            if module_used is not module
        }
        return [
            m
            for m in self.modules
            if m not in imported_ones or is_script(m) or is_test(m)
        ]

    def _start(self, main: Module) -> Module:
        """Return where the process of a main file starts: of tests `conftest.py`."""
        own_modules = self._imports[main].values() if is_test(main) else ()
        first = [m for m in own_modules if os.path.basename(m.path) == _CONFTEST]
        return min(first, key=lambda m: len(m.path), default=main)

    def _loads_before(self, main: Module) -> Iterator[Module]:
        """Yield the outermost package above a main file that imports TensorFlow."""
        above = [
            module
            for module in self.modules
            if os.path.basename(module.path) == "__init__.py"
            and module is not main
            and main.path.startswith(os.path.join(os.path.dirname(module.path), ""))
        ]
        for package in sorted(above, key=lambda m: len(m.path)):
            if any(part.evidence.tensorflow for part in self.parts(package)):
                yield package
                return

    def imports_unread(self, file: Unread) -> bool:
        """Return whether one of the modules imports a file that could not be read."""
        path = os.path.realpath(file.file)
        return path in self._by_path and self._by_path[path] is None

    def roots(self, module: Module) -> list[str]:
        """Return the folders in which a file's imported modules are looked for."""
        return [*self._roots(module), *self.added]

    def _imported_modules(self, module: Module) -> Iterator[tuple[str, Module]]:
        """Yield the own modules that a file imports.

        Each is read when it is first seen.
        """
        if not module.file:
            return
        roots = self.roots(module)
        for name, file in (*imported_files(module, roots), *_conftests(module, roots)):
            path = os.path.realpath(file)
            if path not in self._by_path:
                part = read_module(file)
                self._by_path[path] = part if isinstance(part, Module) else None
                if isinstance(part, Module):
                    self.modules.append(part)
                    self.added.update(dict.fromkeys(added_folders(part)))
            if (module_of_file := self._by_path[path]) is not None:
                yield name, module_of_file

    def parts(self, main: Module) -> list[Module]:
        """Return a file, and all that it imports, directly or through others."""
        modules = {main: None}
        waiting = [main]
        while waiting:
            for module in self._imports[waiting.pop()].values():
                if module not in modules:
                    modules[module] = None
                    waiting.append(module)
        return list(modules)

    def _does_something(self, main: Module) -> bool:
        """Return whether a main file, or what it imports, does more than define."""
        if main not in self._doing:
            self._doing[main] = does_something(main) or any(
                part.evidence.tensorflow and runs_statements(part)
                for part in self.parts(main)
            )
        return self._doing[main]

    def in_program(self, module: Module) -> InProgram:
        """Return where a module stands in its programs."""
        is_main = module in self._of_main
        meanings = self._of.get(module) or [meaning_of([module.evidence])]
        # They mean TensorFlow 1, if one of them does.
        meaning = next((m for m in meanings if m.why_tf1), meanings[0])
        started = self._started.get(module, [])
        lacking = (m for m in started if m.lacks_switch or m is started[-1])
        is_run = is_main and self._does_something(module)
        other_modules = self.names.others(module)
        return InProgram(
            meaning=meaning,
            of_main=next(lacking, self._of_main.get(module, meaning)),
            targets_tf1=meaning.targets_tf1(module.evidence),
            own_modules=self._imports[module],
            is_main=is_main,
            is_run=is_run,
            starts=bool(started) and (is_run or not is_main),
            loads_first=module in self._loading_first,
            unused=frozenset(self.names.unused(module)),
            taken=frozenset(self.names.taken(module)),
            shared=frozenset(self.names.shared(module)),
            rows=frozenset(self._rows(module)),
            called_on_gpu=self._called_on_gpu.get(module, frozenset()),
            libraries=frozenset().union(*(m.libraries for m in other_modules)),
        )

    @functools.cached_property
    def _called_on_gpu(self) -> dict[Module, frozenset[str]]:
        """The names in each module that code in a block for a GPU calls."""
        return called_on_gpu(self._imports)

    def _rows(self, module: Module) -> Iterator[Parameter]:
        """Yield the parameters that may get rows of unequal length in arrays."""
        if _OF_ARRAYS & module.attributes:
            for part in self._beside.get(module, {module}):
                yield from part.rows.parameters()

    def _only_defines(self, module: Module) -> bool:
        """Return whether it is a main file from which files not read may import."""
        return module in self._of_main and not self._does_something(module)


def _conftests(module: Module, roots: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the paths and files of what pytest imports before a file of tests."""
    folder = os.path.dirname(module.path)
    for root in map(os.path.realpath, roots if is_test(module) else ()):
        file = os.path.join(root, _CONFTEST)
        is_above = os.path.join(folder, "").startswith(os.path.join(root, ""))
        if is_above and os.path.isfile(file):
            yield os.path.relpath(file, folder), file
