"""Tells whether a hook class is pure Python, and makes a callback of its methods."""

from __future__ import annotations

import libcst as cst

from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.tree_names import dotted

# Hook's method -> callback's method and its parameters.
TWINS = {
    "begin": ("on_train_begin", ("self", "logs=None")),
    "after_create_session": ("on_train_begin", ("self", "logs=None")),
    "before_run": ("on_train_batch_begin", ("self", "batch", "logs=None")),
    "after_run": ("on_train_batch_end", ("self", "batch", "logs=None")),
    "end": ("on_train_end", ("self", "logs=None")),
}
# Names that Keras uses itself: attributes of a callback, and parameters of its methods.
_TAKEN = frozenset({"model", "params", "validation_data"})
_PARAMETERS = frozenset({"batch", "logs"})
_LOGGING = ("tf.compat.v1.logging.", "tf.get_logger", "tf.logging.")
_HOOK = ("tf.compat.v1.train.SessionRunHook", "tf.train.SessionRunHook")
_OLD_HOOK = ("tf.estimator.SessionRunHook", "tf.compat.v1.estimator.SessionRunHook")


def is_simple(node: cst.ClassDef, context: Context) -> bool:
    """Whether nothing in the class needs a graph, a session or a value."""
    if len(node.bases) != 1 or node.keywords or node.decorators:
        return False
    if context.names.of(node.bases[0].value) not in (*_HOOK, *_OLD_HOOK):
        return False
    methods = [n for n in node.body.body if isinstance(n, cst.FunctionDef)]
    names = [method.name.value for method in methods]
    if {"begin", "after_create_session"} <= set(names) or not set(names) & set(TWINS):
        return False
    return all(_is_simple_method(method, context) for method in methods)


def _is_simple_method(method: cst.FunctionDef, context: Context) -> bool:
    if method.decorators or method.asynchronous is not None:
        return False
    given = method.params
    if given.star_kwarg or isinstance(given.star_arg, cst.Param) or given.kwonly_params:
        return method.name.value not in TWINS
    parameters = [p.name.value for p in given.params]
    search = _Needs(set(parameters[1:]), method.name.value, context)
    method.body.visit(search)
    return not search.found


class _Needs(cst.CSTVisitor):
    """Whether a method uses something that a callback does not have."""

    def __init__(self, parameters: set[str], method: str, context: Context) -> None:
        super().__init__()
        is_event = method in TWINS
        self._parameters = parameters if is_event else set()
        self._is_event = is_event
        self._context = context
        self.found = False

    def visit_Return(self, node: cst.Return) -> None:
        value = node.value
        is_none = isinstance(value, cst.Name) and value.value == "None"
        self.found |= self._is_event and value is not None and not is_none

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        name = dotted(node)
        if name is None:
            return True
        root, _, rest = name.partition(".")
        if root == "self":
            first = rest.partition(".")[0]
            self.found |= first in _TAKEN or first in TWINS
            return False
        if rest == "request_stop" and root in self._parameters:
            above = self._context.parent(node)
            statement = None if above is None else self._context.parent(above)
            stops = isinstance(above, cst.Call) and isinstance(statement, cst.Expr)
            self.found |= not stops
            return False
        known = self._context.names.of(node) or ""
        if known.startswith(("tf.", "tensorflow.", "hookbridge")):
            self.found |= not known.startswith(_LOGGING)
        self.visit_Name(cst.Name(root))
        return False

    def visit_Name(self, node: cst.Name) -> None:
        self.found |= node.value in self._parameters
        self.found |= self._is_event and node.value in _PARAMETERS

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False  # not the keyword

    def visit_Yield(self, node: cst.Yield) -> None:
        self.found = True


def as_callback(node: cst.ClassDef, base: str) -> cst.ClassDef:
    """The class with a callback's methods and the base class `base`."""
    changed = node.visit(_Renamer())
    assert isinstance(changed, cst.ClassDef)
    return changed.with_changes(bases=[cst.Arg(cst.parse_expression(base))])


class _Renamer(cst.CSTTransformer):
    """Renames events, changes their parameters, and stops as a callback does."""

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        name = original_node.name.value
        if name == "__init__":
            return _with_super(updated_node)
        if name not in TWINS:
            return updated_node
        twin, parameters = TWINS[name]
        line = f"def {twin}({', '.join(parameters)}): pass"
        model = cst.ensure_type(cst.parse_statement(line), cst.FunctionDef)
        return updated_node.with_changes(name=model.name, params=model.params)

    def leave_Expr(
        self, original_node: cst.Expr, updated_node: cst.Expr
    ) -> cst.BaseSmallStatement:
        call = updated_node.value
        if (
            isinstance(call, cst.Call)
            and isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "request_stop"
            and not call.args
        ):
            line = cst.parse_statement("self.model.stop_training = True")
            (stop,) = cst.ensure_type(line, cst.SimpleStatementLine).body
            return stop.with_changes(semicolon=updated_node.semicolon)
        return updated_node


def _with_super(method: cst.FunctionDef) -> cst.FunctionDef:
    """`__init__` with a call of Keras's, which sets attributes that Keras reads."""
    if "super(" in cst.Module([method]).code or not isinstance(
        method.body, cst.IndentedBlock
    ):
        return method
    body = list(method.body.body)
    first = body[0]
    has_docstring = (
        isinstance(first, cst.SimpleStatementLine)
        and isinstance(first.body[0], cst.Expr)
        and isinstance(first.body[0].value, cst.SimpleString)
    )
    body.insert(1 if has_docstring else 0, cst.parse_statement("super().__init__()"))
    return method.with_changes(body=method.body.with_changes(body=body))
