"""The test that compares a callback with the hook that it was, in both loops."""

from __future__ import annotations

import ast
import re

import libcst as cst

from hookbridge.migrate.rewriting.context import Context

_HEAD = '''\
"""Holds callbacks to the hooks that they were, in both training loops.

Written by `hookbridge migrate rewrite --native`; run it with pytest.
"""

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge import testing

{imports}
STEPS = 6
# A hook's event, and the callback's that takes its place.
TWINS = {{
    "begin": "on_train_begin",
    "after_create_session": "on_train_begin",
    "before_run": "on_train_batch_begin",
    "after_run": "on_train_batch_end",
    "end": "on_train_end",
}}
OF_KERAS = {{"model", "_model", "params", "validation_data"}}


def in_session(guest):
    with tf.Graph().as_default():
        weight = tf.compat.v1.get_variable(
            "weight", [], initializer=tf.compat.v1.ones_initializer()
        )
        step = tf.compat.v1.train.get_or_create_global_step()
        optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
        train = optimizer.minimize(weight**2, step)
        last = tf.compat.v1.train.StopAtStepHook(last_step=STEPS)
        hooks = hb.as_hooks([guest, last])
        with tf.compat.v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            while not session.should_stop():
                session.run(train)


def in_fit(guest):
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.ones([STEPS, 1])
    model.fit(x, x, batch_size=1, verbose=0, callbacks=hb.as_callbacks([guest]))


def seen(make, loop):
    """The events that a guest receives, and its attributes afterwards."""
    guest = make()
    log = testing.EventLog()
    loop(testing.spy(guest, log, "guest"))
    events = {{TWINS.get(k, k): n for k, n in log.counts("guest").items()}}
    events.pop("set_model", None)
    events.pop("set_params", None)
    testing.unspy(guest)
    state = {{k: repr(v) for k, v in vars(guest).items() if k not in OF_KERAS}}
    return events, {{k: v for k, v in state.items() if not k.startswith("_")}}

'''
_CLASS = """
{hook}

{callback}

@pytest.mark.parametrize("loop", [in_session, in_fit])
def test_{lower}(loop):
    {skip}assert seen(lambda: {name}AsHook({arguments}), loop) == seen(
        lambda: {name}({arguments}), loop
    )
"""
_SKIP = 'pytest.skip("write the arguments of the class here")\n    '


def with_class(hook: cst.ClassDef, callback: cst.ClassDef, context: Context) -> str:
    """The test of this file's classes, with one more in it."""
    name = hook.name.value
    text = context.parity_test or _HEAD.format(imports=_imports(context))
    arguments = _arguments(name, context)
    renamed = re.sub(rf"\b{name}\b", f"{name}AsHook", _code(hook, context))
    return text + _CLASS.format(
        hook=renamed,
        callback=_code(callback, context),
        lower=re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(),
        name=name,
        skip=_SKIP if arguments is None else "",
        arguments=arguments or "",
    )


def _code(node: cst.ClassDef, context: Context) -> str:
    """The class, with `tf.compat.v1` where its file has another name for it."""
    code = cst.Module([node.with_changes(leading_lines=())]).code.strip() + "\n"
    if context.v1_root:
        code = re.sub(rf"\b{context.v1_root}\.", "tf.compat.v1.", code)
    return code


def _imports(context: Context) -> str:
    """The file's plain imports; those from TensorFlow and hookbridge as aliases."""
    lines = []
    for name, module in context.imports.everything().items():
        if module.partition(".")[0] in ("tensorflow", "hookbridge"):
            if name not in ("tf", "hb"):
                lines.append(_alias(name, module))
        elif "." in module or name != module:
            parent, _, last = module.rpartition(".")
            plain = f"from {parent} import {last}" if parent else f"import {module}"
            lines.append(plain if name == last else f"{plain} as {name}")
        else:
            lines.append(f"import {module}")
    return "".join(f"{line}\n" for line in lines)


def _alias(name: str, module: str) -> str:
    root, _, rest = module.partition(".")
    short = {"tensorflow": "tf", "hookbridge": "hb"}[root]
    return f"{name} = {short}.{rest}" if rest else f"{name} = {short}"


def _arguments(name: str, context: Context) -> str | None:
    """The arguments of the first use, if all of them are plain values."""
    for node in ast.walk(ast.parse(context.text)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == name
        ):
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            try:
                for value in values:
                    ast.literal_eval(value)
            except ValueError:
                return None
            inside = ast.unparse(node).partition("(")[2]
            return inside[:-1]
    return None
