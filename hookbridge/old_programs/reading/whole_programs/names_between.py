"""Which names the files of programs have from each other, and which nobody uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from hookbridge.old_programs.reading.names.import_statements import (
    Import,
    all_imports,
    canonical,
)
from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.tf1_names.removed_in_libraries import removed_names, roots


class NamesBetween:
    """The names that go from one file to another.

    Args:
      imports: the own modules that each file imports, by dotted name.
      beside: the modules of the programs that a file is a part of.
      only_defines: whether files that were not read may use the names of a file.
    """

    def __init__(
        self,
        imports: Mapping[Module, Mapping[str, Module]],
        beside: Mapping[Module, set[Module]],
        only_defines: Callable[[Module], bool],
    ) -> None:
        self._imports = imports
        self._beside = beside
        self._only_defines = only_defines

    def others(self, module: Module) -> set[Module]:
        """Return the other modules of the programs that a file is a part of."""
        return self._beside.get(module, set()) - {module}

    def taken(self, module: Module) -> Iterator[str]:
        """Yield the names that other files import one by one from a file's stars."""
        if not module.names.scopes.starred:
            return
        for importer in self.others(module):
            for name, source_module in self._imports[importer].items():
                if source_module is module:
                    for dotted in importer.names.scopes.imported_names():
                        source, _, attribute = dotted.rpartition(".")
                        if source == name:
                            yield attribute

    def is_unused(self, module: Module, bound: str) -> bool:
        """Return whether no file of its programs uses a name that a file imports.

        Other files may import it from this one. Files that were not read may, if this
        one only defines.

        Args:
          module: the file that imports it.
          bound: the name as it is bound there.
        """
        if bound in module.words or self._only_defines(module):
            return False
        users = self.others(module)
        said = (user.words | self._from_others(user) for user in users)
        return not any(bound in words for words in said)

    def unused_names(self, module: Module, found: Iterable[Import]) -> set[str]:
        """Return the full names of those imports that bind unused names alone."""
        imported = list(found)
        used = {i.full for i in imported if not self.is_unused(module, i.bound)}
        return {i.full for i in imported} - used

    def shared(self, module: Module) -> Iterator[str]:
        """Yield the names of a file's imports that other files may have from it."""
        bound = {import_.bound for import_ in all_imports(module.nodes)}
        for importer in self.others(module):
            if module in self._imports[importer].values():
                has_star = importer.names.scopes.starred
                used = importer.words if has_star else importer.attributes
                yield from bound & (used | self._from_others(importer))

    def _from_others(self, module: Module) -> set[str]:
        """Return the names that a file imports from others of its programs."""
        roots = {name.partition(".")[0] for name in (*self._imports[module], "")}
        names = (import_.full for import_ in all_imports(module.nodes))
        return {n.rpartition(".")[2] for n in names if n.partition(".")[0] in roots}

    def unused(self, module: Module) -> Iterator[str]:
        """Yield the canonical names that a file imports in vain."""
        taken = {
            from_star.dotted.rpartition(".")[0]
            for importer in self.others(module)
            for from_star in importer.names.given.values()
        }
        if not self._only_defines(module):
            yield from map(canonical, module.unused_stars - taken)
        inside = []
        for import_ in all_imports(module.nodes):
            root, dot, _ = import_.full.partition(".")
            is_inside = dot and (root == "tensorflow" or root in roots())
            if is_inside or import_.full in removed_names():
                inside.append(import_)
        yield from map(canonical, self.unused_names(module, inside))
