"""Calls of `tf.contrib` whose arguments have other names today.

    -tf.contrib.estimator.replicate_model_fn(fn, tf.losses.Reduction.SUM)
    +hb.replicate_model_fn(fn, loss_reduction=tf.losses.Reduction.SUM)
    -tf.contrib.learn.RunConfig(save_checkpoints_steps=5, uid="a")
    +hb.estimator.RunConfig(save_checkpoints_steps=5)
    -tf.contrib.lookup.index_table_from_tensor(mapping=words)
    +lookup_ops.index_table_from_tensor(vocabulary_list=words)

A call with an argument that has no counterpart stays and gets a comment.
"""

from __future__ import annotations

import libcst as cst

from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "contrib-calls"
_TOWERS = "tf.contrib.estimator.replicate_model_fn"
_RUN_CONFIG = "tf.contrib.learn.RunConfig"
_INDEX_TABLE = "tf.contrib.lookup.index_table_from_tensor"
# Arguments of contrib's RunConfig that `hb.estimator.RunConfig` takes too.
_RUN_CONFIG_WORDS = frozenset(
    {
        *("tf_random_seed", "save_summary_steps", "save_checkpoints_secs"),
        *("save_checkpoints_steps", "keep_checkpoint_max", "session_config"),
        *("keep_checkpoint_every_n_hours", "log_step_count_steps", "model_dir"),
        "protocol",
    }
)


def prepare(context: Context) -> None:
    """Chooses the calls of RunConfig, so that their imports can go."""
    for chain in context.chains:
        call = context.parent(chain)
        if (
            isinstance(call, cst.Call)
            and call.func is chain
            and context.names.of(chain) == _RUN_CONFIG
            and all(_word(a) in (*_RUN_CONFIG_WORDS, "uid") for a in call.args)
        ):
            context.taken.add(chain)


def apply(old: cst.Call, new: cst.Call, context: Context) -> cst.Call:
    """Changes the arguments. Other rules change the names, except that of RunConfig."""
    name = context.names.of(old.func)
    if name == _TOWERS:
        return _towers(old, new, context)
    if name == _INDEX_TABLE:
        return _index_table(old, new, context)
    if name == _RUN_CONFIG:
        return _run_config(old, new, context)
    return new


def _word(argument: cst.Arg) -> str:
    return "" if argument.keyword is None else argument.keyword.value


def _named(argument: cst.Arg, word: str) -> cst.Arg:
    tight = cst.AssignEqual(
        whitespace_before=cst.SimpleWhitespace(""),
        whitespace_after=cst.SimpleWhitespace(""),
    )
    return argument.with_changes(keyword=cst.Name(word), equal=tight)


def _towers(old: cst.Call, new: cst.Call, context: Context) -> cst.Call:
    """In contrib the second argument is the reduction; in hookbridge the devices."""
    if len(new.args) < 2 or _word(new.args[1]) or new.args[1].star:
        return new
    words = ("", "loss_reduction", "devices")
    arguments = [
        argument if number == 0 or _word(argument) else _named(argument, words[number])
        for number, argument in enumerate(new.args[:3])
    ]
    after = new.with_changes(args=arguments)
    context.edit(NAME, old, after)
    return after


def _index_table(old: cst.Call, new: cst.Call, context: Context) -> cst.Call:
    if not any(_word(argument) == "mapping" for argument in new.args):
        return new
    arguments = [
        argument.with_changes(keyword=cst.Name("vocabulary_list"))
        if _word(argument) == "mapping"
        else argument
        for argument in new.args
    ]
    after = new.with_changes(args=arguments)
    context.edit(NAME, old, after)
    return after


def _run_config(old: cst.Call, new: cst.Call, context: Context) -> cst.Call:
    if old.func not in context.taken:
        return new
    kept = [argument for argument in new.args if _word(argument) != "uid"]
    if kept:
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    text = context.imports.expression("hookbridge.estimator.RunConfig")
    after = new.with_changes(func=cst.parse_expression(text), args=kept)
    context.edit(NAME, old, after)
    return after


RULE = RewriteRule(
    name=NAME,
    summary="Arguments of `tf.contrib` functions that live on under another name.",
    nodes=(cst.Call,),
    apply=apply,
    codes=("CONTRIB_RUN_CONFIG",),
    words=("contrib",),
    prepare=prepare,
)
