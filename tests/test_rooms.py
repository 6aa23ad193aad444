"""Rules about rooms for which import-linter has no contract.

Imports only for types and imports inside functions count too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeGuard

import pytest
from source_trees import Nodes, nodes_of, sources

ONE_TENSORFLOW = True
# A room is the folder of a module. These folders hold rooms and are no rooms: a module
# directly in one of them is a room of its own.
_HOUSES = ("hookbridge", "hookbridge.adapters", "hookbridge.jobs.loops")
# Files that themselves set an attribute (no method) on another object -> which, or why.
_ATTRIBUTES = {
    "adapters/fit_loop/model_step.py": "`train_function`, where Keras files it",
    "adapters/fit_loop/native_step_maker.py": "`stop_training`",
    "adapters/guests/roles.py": "the mark of `set_role` on a guest",
    "adapters/live_model/watched.py": "who listens to a variable",
    "adapters/session_loop/shared/borrowed.py": "attributes of a lent callback",
    "adapters/state/attributes.py": "the state of a callback",
    "hookbridge/ground/compat/objects.py": "two attributes that have rows",
    "hookbridge/estimator/estimator_training.py": "fields of the RunConfig of one task",
    "hookbridge/ground/imports/lazy_modules.py": "passes on what is set in modules",
    "hookbridge/estimator/facade.py": "passes on what is set on the module it covers",
    "hookbridge/estimator/restored_package.py": "the builtins of modules that it loads",
    "hookbridge/estimator/stand_ins.py": "fills modules of its own making",
    "hookbridge/jobs/loops/callable_session.py": "a field of our own class",
    "hookbridge/old_programs/run/execute.py": "names that Python gives to `__main__`",
    "hookbridge/old_programs/run/tracebacks.py": "`sys.excepthook`, after an error",
    "hookbridge/testing/recorders.py": "Keras's mark on a function of our own",
    "hookbridge/testing/spying.py": "the mark of a guest that is spied on",
}
Import = tuple[str, str]  # module, name in it


@pytest.fixture(scope="module")
def graph() -> dict[str, list[Import]]:
    """What each module imports from the package: `(module, name)`."""
    known = {module_of(file): nodes for file, nodes in sources().items()}
    found: dict[str, list[Import]] = {name: [] for name in known}
    for name, nodes in known.items():
        for node in nodes:
            if isinstance(node, ast.Import):
                names = [each.name for each in node.names]
                found[name] += [(each, "") for each in names if each in known]
            elif isinstance(node, ast.ImportFrom) and node.module in known:
                for each in node.names:
                    inner = f"{node.module}.{each.name}"
                    place = (inner, "") if inner in known else (node.module, each.name)
                    found[name].append(place)
    return found


def module_of(file: str) -> str:
    """The name by which a source file is imported."""
    path = file if file.startswith("hookbridge/") else f"hookbridge/{file}"
    name = path.removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


def test_no_import_circle(graph: dict[str, list[Import]]) -> None:
    needs = {name: {module for module, _ in found} for name, found in graph.items()}
    assert not circle(needs), "modules that import each other"


def test_no_circle_of_folders(graph: dict[str, list[Import]]) -> None:
    """What a folder's `__init__` imports counts for the folder, if it is a room."""
    packages = {name.rpartition(".")[0] for name in graph} - set(_HOUSES)

    def folder_of(module: str) -> str:
        return module if module in packages else room_of(module)

    assert not circle(grouped(graph, folder_of)), "folders that import each other"


def test_no_circle_of_top_level_folders(graph: dict[str, list[Import]]) -> None:
    """Rooms of two folders may need each other in a circle that no room is in."""
    assert not circle(grouped(graph, top_level_of)), "folders that import each other"


def top_level_of(module: str) -> str:
    """The folder or file of the package that a module is in, as `hookbridge.jobs`."""
    return ".".join(module.split(".")[:2])


def grouped(
    graph: dict[str, list[Import]], group_of: Callable[[str], str]
) -> dict[str, set[str]]:
    """The groups that each group of modules imports."""
    needs: dict[str, set[str]] = {}
    for name, found in graph.items():
        group = group_of(name)
        needs.setdefault(group, set()).update({group_of(m) for m, _ in found} - {group})
    # The package names its public names; as in pyproject.toml.
    needs["hookbridge"].clear()
    return needs


def circle(left: dict[str, set[str]]) -> list[str]:
    """The names in circles of a graph, and those between two circles; changes it."""
    while free := [name for name, needs in left.items() if not needs & left.keys()]:
        for name in free:
            del left[name]
    # The rest is in a circle or needs one: remove the modules that no other needs.
    while ends := [n for n in left if not any(n in needs for needs in left.values())]:
        for name in ends:
            del left[name]
    return sorted(left)


def test_no_underscore_name_crosses_a_room(graph: dict[str, list[Import]]) -> None:
    found = [
        f"{importer} imports {module}.{name}"
        for importer, names in graph.items()
        for module, name in names
        if name.startswith("_") and not name.startswith("__")
        if room_of(importer) != room_of(module)
    ]
    assert not found


def test_a_reading_order_names_the_files_of_its_room(repo_root: Path) -> None:
    """The paragraph names each file and folder of the room, and nothing else.

    Words in parentheses explain, and are not looked at.
    """
    wrong = []
    for file, nodes in sources().items():
        module = nodes[0]
        if not file.endswith("__init__.py") or not isinstance(module, ast.Module):
            continue
        text = ast.get_docstring(module) or ""
        order = re.search(r"(?:^|\n)(Reading order:|Read )(.+?)(\n\n|$)", text, re.S)
        if order is None:
            continue
        words = re.sub(r"\([^)]*\)", "", order[2])
        named = set(re.findall(r"`([a-z_0-9]+)`", words))
        here = {
            path.stem
            for path in (repo_root / file).parent.iterdir()
            if path.suffix == ".py" or (path / "__init__.py").exists()
        } - {"__init__", "__main__"}
        if here != named:
            missing, unknown = sorted(here - named), sorted(named - here)
            wrong.append(f"{file}: does not name {missing}, has no {unknown}")
    assert not wrong, "\n".join(wrong)


def sets_on_others(nodes: Nodes) -> list[str]:
    """Statements that set a method, or any attribute by its name, on another object.

    `x.name = value` counts if the value is a function or the name is private;
    `setattr`, `delattr` and writes to `vars(x)` always count.
    """
    functions = {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    spaces = {
        ast.unparse(target)
        for n in nodes
        if isinstance(n, ast.Assign) and _is_namespace(n.value)
        for target in n.targets
    }
    found = []
    for node in nodes:
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            writes = name in ("setattr", "delattr") and not _is_own(node.args[0])
            if isinstance(node.func, ast.Attribute):
                writes |= node.func.attr in ("update", "pop", "setdefault") and (
                    _is_namespace(node.func.value)
                )
            found += [ast.unparse(node)] if writes else []
        elif isinstance(node, ast.Assign):
            for target in _targets(node):
                if isinstance(target, ast.Subscript):
                    space = target.value
                    writes = _is_namespace(space) or ast.unparse(space) in spaces
                else:
                    writes = isinstance(target, ast.Attribute) and (
                        not _is_own(target.value)
                        and (
                            re.match("_[a-z]", target.attr) is not None
                            or any(_is_function(v, functions) for v in _values(node))
                        )
                    )
                found += [ast.unparse(node)] if writes else []
    return found


def _targets(node: ast.Assign) -> list[ast.expr]:
    return [e for t in node.targets for e in (t.elts if _is_tuple(t) else [t])]


def _values(node: ast.Assign) -> list[ast.expr]:
    return node.value.elts if _is_tuple(node.value) else [node.value]


def _is_tuple(node: ast.expr) -> TypeGuard[ast.Tuple]:
    return isinstance(node, ast.Tuple)


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _is_namespace(node: ast.expr) -> bool:
    """Whether it is `vars(x)` or `x.__dict__`, and `x` is not `self` or `cls`."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "vars":
        return not _is_own(node.args[0])
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "__dict__"
        and not _is_own(node.value)
    )


def _is_function(node: ast.expr, functions: set[str]) -> bool:
    if isinstance(node, ast.Call):
        made_by = ("functools.partial", "classmethod", "staticmethod")
        return ast.unparse(node.func) in made_by
    name = getattr(node, "id", None) or getattr(node, "attr", None)
    return isinstance(node, ast.Lambda) or name in functions


def test_only_patching_sets_methods() -> None:
    found = {
        file: sets
        for file, nodes in sources().items()
        if file != "hookbridge/ground/patching.py" and (sets := sets_on_others(nodes))
    }
    assert not {k: v for k, v in found.items() if k not in _ATTRIBUTES}
    assert found.keys() >= _ATTRIBUTES.keys()  # no row is unused


def test_what_is_remembered_of_objects_is_in_one_file() -> None:
    """A weak map of a module would be a second memory; `Fact` declares an entry."""
    found = {
        file
        for file, nodes in sources().items()
        if file.startswith("adapters/")
        for statement in nodes[0].body  # type: ignore[attr-defined]
        if "WeakKeyDictionary" in ast.unparse(statement)
        and isinstance(statement, (ast.Assign, ast.AnnAssign))
    }
    assert not found


def test_no_host_is_made_of_another() -> None:
    """A host has three parts; each part is derived from its kind of part alone."""
    parts = {"GraphPart", "SessionPart", "StepMaker"}
    bases = {
        node.name: [ast.unparse(base) for base in node.bases]
        for file, nodes in sources().items()
        if file.startswith("adapters/")
        for node in nodes
        if isinstance(node, ast.ClassDef)
    }
    found = {name for name, of in bases.items() if parts & set(of)}
    assert len(found) >= 7, found
    assert not [name for name, of in bases.items() if found & set(of)]
    assert all(len(bases[name]) == 1 for name in found)


# What sets methods, and keeps nothing that could remove them.
STAYS = re.compile(r"patching\.wrap|(?:patching\.)?Patches\(.*\)\.install")


def test_patches_that_stay_are_listed(repo_root: Path) -> None:
    text = (repo_root / "docs/decisions/0008-patches-that-stay.md").read_text()
    listed = set(re.findall(r"^\| `([\w/]+\.py)` \|", text, re.MULTILINE))
    found = {
        file
        for file, nodes in sources().items()
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("install", "wrap")
        and STAYS.fullmatch(ast.unparse(node.func))
        and file != "hookbridge/ground/patching.py"
    }
    assert found == listed


@pytest.mark.parametrize(
    ("line", "sets"),
    [
        ("def f(): ...\nmodel.fit = f", True),
        ("model.fit, model.x = 1, lambda: 2", True),
        ("setattr(model, 'fit', f)", True),
        ("vars(model)['fit'] = f", True),
        ("own = vars(model)\nown['fit'] = f", True),
        ("vars(model).update(fit=f)", True),
        ("function._callable_fn = None", True),
        ("model.stop_training = True", False),
        ("setattr(self, 'fit', f)", False),
    ],
)
def test_the_search_for_methods_finds_them(line: str, sets: bool) -> None:
    assert bool(sets_on_others(nodes_of(line))) is sets


def room_of(module: str) -> str:
    room = module.rpartition(".")[0]
    return module if room in _HOUSES or not room else room


def test_an_assert_only_narrows_a_type() -> None:
    """`python -O` leaves asserts out: what a user may meet is raised."""
    for file, nodes in sources().items():
        for node in nodes:
            if isinstance(node, ast.Assert):
                told = ast.unparse(node.test)
                narrows = told.startswith("isinstance(") or told.endswith("is not None")
                assert narrows, f"{file}, line {node.lineno}: assert {told}"
