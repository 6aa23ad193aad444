"""Writes signatures and docstrings into the pages of `docs/reference/`.

A page names an object in a comment, `<!-- ::: hookbridge.explain -->`. What follows, up
to `<!-- ::: -->`, is written by this file, so that the pages can be read on GitHub and
with `hookbridge docs`. The site makes its own from the comment.

    python .ci/reference_pages.py          # writes the pages
    python .ci/reference_pages.py --check  # exits with 1 if one is out of date
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
FOLDER = ROOT / "docs" / "reference"
# The comment with a name, and what was written below it; never up to another name.
BLOCK = re.compile(
    r"<!-- ::: (?P<name>\w\S*)(?P<options> \{.*?\})? -->\n"
    r"(?:(?:(?!<!-- ::: \w).)*?<!-- ::: -->\n)?",
    re.S,
)
_SECTIONS = ("Args:", "Attributes:", "Raises:", "Returns:", "Yields:")
_WIDTH = 88


def for_site(page: str) -> str:
    """A page as mkdocstrings wants it: the directives, without what stands below."""

    def directive(match: re.Match[str]) -> str:
        members = (match["options"] or "").strip(" {}")
        options = f"    options: {{members: {members}}}\n" if members else ""
        return f"::: {match['name']}\n{options}"

    return BLOCK.sub(directive, page)


def filled(page: str) -> str:
    """A page with the signatures and docstrings of the objects that it names."""

    def block(match: re.Match[str]) -> str:
        name, options = match["name"], match["options"]
        members = re.findall(r"\w+", options) if options else None
        text = "\n\n".join(entry(name, members))
        comment = f"<!-- ::: {name}{options or ''} -->"
        return f"{comment}\n\n{text}\n\n<!-- ::: -->\n"

    return BLOCK.sub(block, page)


def entry(name: str, members: list[str] | None) -> Iterator[str]:
    """The parts of an object's entry: heading, signature, docstring, methods."""
    value = value_of(name)
    short = name.rpartition(".")[2]
    yield f"### `{short}`"
    is_called = inspect.isclass(value) or inspect.isfunction(inspect.unwrap(value))
    if not is_called and not inspect.ismodule(value):
        is_type = type(value).__module__ == "typing"
        yield f"`{value!r}`" if is_type else f"A `{type(value).__name__}`."
        return
    if is_called:
        yield _indented(signature(short, value))
    yield markdown(inspect.getdoc(value) or "")
    if inspect.isclass(value):
        for method, member in methods(value, members):
            yield f"#### `{short}.{method}`"
            if not isinstance(member, property):
                function = getattr(member, "__func__", member)
                yield _indented(signature(method, function))
            yield markdown(inspect.getdoc(getattr(value, method)) or "")


def value_of(name: str) -> Any:
    """The object with a dotted name."""
    first, *rest = name.split(".")
    value: Any = importlib.import_module(first)
    for part in rest:
        if inspect.ismodule(value) and not hasattr(value, part):
            importlib.import_module(f"{value.__name__}.{part}")
        value = getattr(value, part)
    return value


def methods(value: Any, members: list[str] | None) -> Iterator[tuple[str, Any]]:
    """The methods and properties of a class's own that have a docstring."""
    own = vars(value)
    for name in members or own:
        member = own.get(name)
        function = getattr(member, "__func__", member)
        is_shown = inspect.isfunction(function) or isinstance(member, property)
        has_text = is_shown and (function.__doc__ or "").strip()
        if has_text and not name.startswith("_"):
            yield name, member


def signature(name: str, value: Any) -> str:
    """How an object is called, as its source says it; in lines if it is long."""
    function = value
    if inspect.isclass(value):
        function = vars(value).get("__init__")
        if not inspect.isfunction(function) or hasattr(value, "__dataclass_fields__"):
            fields = getattr(value, "__annotations__", {})
            public = {k: v for k, v in fields.items() if not k.startswith("_")}
            return _in_lines(name, [f"{k}: {v}" for k, v in public.items()], "")
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    node = tree.body[0]
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    arguments = [text for text in _arguments(node.args) if text not in ("self", "cls")]
    returns = ""
    if node.returns is not None and not inspect.isclass(value):
        returns = f" -> {ast.unparse(node.returns)}"
    return _in_lines(name, arguments, returns)


def _arguments(given: ast.arguments) -> Iterator[str]:
    """Each argument with its annotation and its default."""
    plain = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(given.defaults))
    defaults += given.defaults
    for argument, default in zip(plain, defaults, strict=True):
        yield _argument(argument, default)
    if given.vararg is not None:
        yield f"*{ast.unparse(given.vararg)}"
    elif given.kwonlyargs:
        yield "*"
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _argument(argument, default)
    if given.kwarg is not None:
        yield f"**{ast.unparse(given.kwarg)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    text = ast.unparse(argument)
    if default is None:
        return text
    equals = " = " if argument.annotation is not None else "="
    return f"{text}{equals}{ast.unparse(default)}"


def _in_lines(name: str, arguments: list[str], returns: str) -> str:
    line = f"{name}({', '.join(arguments)}){returns}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {a}," for a in arguments), f"){returns}"])


def _indented(text: str) -> str:
    return textwrap.indent(text, "    ")


def markdown(docstring: str) -> str:
    """A docstring in Google style as Markdown: its sections become lists."""
    lines: list[str] = []
    is_section = False
    for line in docstring.splitlines():
        if line in _SECTIONS:
            lines += [f"**{line[:-1]}**", ""]
            is_section = True
        elif is_section and (item := re.match(r"  (\**\w[\w.]*):(?: (.*))?$", line)):
            lines.append(f"- `{item[1]}`: {item[2] or ''}".rstrip())
        elif line and not line.startswith(" "):
            is_section = False
            lines.append(line)
        else:
            lines.append(line.removeprefix("  ") if is_section else line)
    return "\n".join(lines).strip()


def changed(write: Callable[[Path, str], Any]) -> list[Path]:
    """The pages that are out of date; `write` is called with each and its text."""
    found = []
    for path in sorted(FOLDER.glob("*.md")):
        page = path.read_text("utf-8")
        if (text := filled(page)) != page:
            found.append(path)
            write(path, text)
    return found


def main() -> int:
    """Writes or checks the pages."""
    is_check = "--check" in sys.argv[1:]
    old = changed(
        lambda path, text: None if is_check else path.write_text(text, "utf-8")
    )
    for path in old:
        print(path.relative_to(ROOT))
    return 1 if is_check and old else 0


if __name__ == "__main__":
    sys.exit(main())
