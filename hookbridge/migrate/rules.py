"""The rules: what becomes of a TensorFlow name that the target lacks.

Each rule is written once here, for all that reports, rewrites or runs old code.

To add a rule, append a `Rule` to `RULES`, a row to docs/migration.md (a test compares
the two) and an example to tests/migrate/test_rules.py. Where two rules match, the one
with the longer prefix counts.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from hookbridge.migrate.findings import Finding
from hookbridge.migrate.sources import Source

INSTALL = "`hookbridge.estimator.install()` before the program's own imports"
SLIM = "tf_slim (`pip install tf_slim`)"


@dataclass(frozen=True)
class Rule:
    """What becomes of the names below some prefixes.

    Attributes:
      code: the reason code.
      prefixes: canonical dotted names; a rule matches them and all below them.
      verdict: see `hookbridge.migrate.findings.Finding`.
      reason: what breaks, in a sentence.
      way_out: what to write; `{name}` is the whole name, `{rest}` what follows the
        prefix, `{last}` the last part, `{public}` the first class and what follows it.
      run: what `hookbridge run` does about it; empty if nothing.
    """

    code: str
    prefixes: tuple[str, ...]
    verdict: str
    reason: str
    way_out: str
    run: str = ""

    def match(self, name: str) -> str | None:
        """The prefix that matches, or None.

        Args:
          name: a canonical dotted name, such as `tf.estimator.Estimator`.
        """
        for prefix in self.prefixes:
            if name == prefix or name.startswith(f"{prefix}."):
                return prefix
        return None

    def written(self, name: str, prefix: str) -> str:
        """The way out for a name.

        Args:
          name: a canonical dotted name.
          prefix: what `match` returned for it.
        """
        parts = name.split(".")
        first_class = next((i for i, p in enumerate(parts) if p[:1].isupper()), -1)
        return self.way_out.format(
            name=name,
            rest=name[len(prefix) + 1 :],
            last=parts[-1],
            public=".".join(parts[first_class:]),
        )


_CONTRIB = "tf.contrib is gone since TensorFlow 2.0."
_ESTIMATOR = "TensorFlow has no Estimator since 2.16."
_PRIVATE = "tensorflow.python is private: names in it move without notice."

RULES: tuple[Rule, ...] = (
    Rule(
        "ESTIMATOR",
        (
            *("tf.estimator", "tf.compat.v1.estimator", "tf.keras.estimator"),
            *("tensorflow_estimator.estimator", "tf.compat.v1.keras.estimator"),
        ),
        "auto",
        _ESTIMATOR,
        "`hb.estimator.{rest}`, or " + INSTALL,
        run="brings it back in its place",
    ),
    Rule(
        "ESTIMATOR_INPUTS",
        ("tf.estimator.inputs",),
        "auto",
        _ESTIMATOR,
        "`hb.estimator.v1.inputs.{rest}`",
        run="brings it back in its place",
    ),
    Rule(
        "ESTIMATOR_PRIVATE",
        (
            "tensorflow_estimator.python",
            "tensorflow.python.estimator",
            "tensorflow_estimator",
        ),
        "assisted",
        _ESTIMATOR,
        "the public name: `hb.estimator.{public}`",
        run="answers with tensorflow_estimator 2.15",
    ),
    Rule(
        "CONTRIB_SLIM",
        ("tf.contrib.slim", "tf.contrib.framework.arg_scope"),
        "auto",
        _CONTRIB,
        SLIM + ": `tf_slim.{last}`",
        run="answers with tf_slim",
    ),
    Rule(
        "CONTRIB_LAYERS",
        ("tf.contrib.layers", "tf.contrib.losses"),
        "assisted",
        _CONTRIB,
        SLIM + ": `tf_slim.{last}`; batch_norm's defaults are others",
        run="answers with tf_slim",
    ),
    Rule(
        "CONTRIB_GLOBAL_STEP",
        (
            "tf.contrib.framework.get_or_create_global_step",
            "tf.contrib.framework.get_global_step",
            "tf.contrib.framework.create_global_step",
        ),
        "auto",
        _CONTRIB,
        "`tf.compat.v1.train.{last}`",
        run="answers with tf.compat.v1.train",
    ),
    Rule(
        "CONTRIB_FRAMEWORK",
        ("tf.contrib.framework",),
        "assisted",
        _CONTRIB,
        SLIM + ": `tf_slim.{last}`",
        run="answers with tf_slim and tf.compat.v1",
    ),
    Rule(
        "CONTRIB_METRICS",
        ("tf.contrib.metrics",),
        "assisted",
        _CONTRIB,
        "`tf.compat.v1.metrics`, or " + SLIM + ": `tf_slim.metrics.{last}`",
        run="answers with tf_slim",
    ),
    Rule(
        "CONTRIB_TOWERS",
        (
            "tf.contrib.estimator.replicate_model_fn",
            "tf.contrib.estimator.TowerOptimizer",
        ),
        "assisted",
        _CONTRIB,
        "`hb.replicate_model_fn(model_fn)`; the optimizer is given as it is",
        run="answers with hb.replicate_model_fn",
    ),
    Rule(
        "CONTRIB_ESTIMATOR",
        ("tf.contrib.estimator",),
        "assisted",
        _CONTRIB,
        "`hb.estimator.experimental.{last}`, `hb.estimator.{last}`, or a function of "
        "your own",
        run="answers with Estimator's own names",
    ),
    Rule(
        "CONTRIB_RUN_CONFIG",
        ("tf.contrib.learn.RunConfig",),
        "assisted",
        _CONTRIB,
        "`hb.estimator.RunConfig`; `uid` and session options go",
        run="answers with a RunConfig that takes the old arguments",
    ),
    Rule(
        "CONTRIB_LEARN",
        ("tf.contrib.learn",),
        "manual",
        _CONTRIB,
        "`TrainSpec`, `EvalSpec` and `hb.estimator.train_and_evaluate` for Experiment "
        "and learn_runner; a canned Estimator of `hb.estimator` for the others",
        run="answers with train_and_evaluate",
    ),
    Rule(
        "CONTRIB_HPARAMS",
        ("tf.contrib.training.HParams",),
        "assisted",
        _CONTRIB,
        "`types.SimpleNamespace` or a dataclass",
        run="answers with a class of the same behaviour",
    ),
    Rule(
        "CONTRIB_LOOKUP",
        ("tf.contrib.lookup",),
        "assisted",
        _CONTRIB,
        "`tf.lookup.StaticHashTable` or `tf.lookup.StaticVocabularyTable`",
        run="answers with the tables of TensorFlow",
    ),
    Rule(
        "CONTRIB_RNN",
        ("tf.contrib.rnn", "tf.contrib.seq2seq", "tf.contrib.cudnn_rnn"),
        "assisted",
        _CONTRIB,
        "`tf.compat.v1.nn.rnn_cell.{last}` with `tf.compat.v1.nn.dynamic_rnn`",
        run="answers with the cells of Keras 2",
    ),
    Rule(
        "CONTRIB_CRF",
        ("tf.contrib.crf",),
        "manual",
        _CONTRIB,
        "code of your own: TensorFlow has no CRF",
    ),
    Rule(
        "CONTRIB_DATA",
        ("tf.contrib.data",),
        "assisted",
        _CONTRIB,
        "`tf.data.{last}` or `tf.data.experimental.{last}`",
        run="answers with tf.data",
    ),
    Rule(
        "CONTRIB_DISTRIBUTE",
        ("tf.contrib.distribute", "tf.contrib.cluster_resolver"),
        "assisted",
        _CONTRIB,
        "`tf.distribute.{last}` or `tf.distribute.cluster_resolver.{last}`",
        run="answers with tf.distribute",
    ),
    Rule(
        "CONTRIB_TPU",
        ("tf.contrib.tpu", "tf.compat.v1.estimator.tpu", "tf.estimator.tpu"),
        "manual",
        "Hooks on a TPU run on its host; hookbridge does not carry them.",
        "`tf.distribute.TPUStrategy` with `Model.fit`",
    ),
    Rule(
        "CONTRIB_PREDICTOR",
        ("tf.contrib.predictor",),
        "assisted",
        _CONTRIB,
        "`tf.saved_model.load(folder).signatures[...]`",
        run="answers with a predictor over a session",
    ),
    Rule(
        "CONTRIB_PROFILER",
        ("tf.contrib.tfprof",),
        "assisted",
        _CONTRIB,
        "`tf.compat.v1.profiler.profile`",
        run="answers with tf.compat.v1.profiler",
    ),
    Rule(
        "CONTRIB",
        ("tf.contrib",),
        "manual",
        _CONTRIB,
        "nothing living is known to stand behind `{name}`; see docs/migration.md",
    ),
    Rule(
        "LAYERS",
        ("tf.layers", "tf.compat.v1.layers"),
        "assisted",
        "TensorFlow has these layers with Keras 2 only.",
        "`tf.compat.v1.layers.{rest}`, tf_keras installed and the environment variable "
        "TF_USE_LEGACY_KERAS=1 set before TensorFlow is imported",
        run="chooses Keras 2 before TensorFlow is imported",
    ),
    Rule(
        "TUTORIALS",
        ("tf.examples", "tensorflow.examples"),
        "manual",
        "TensorFlow's tutorials are no part of its package since 2.0.",
        "`tf.keras.datasets`, or a reader of your own",
        run="answers with a reader of local files",
    ),
    Rule(
        "KERAS_PRIVATE",
        ("tensorflow.python.keras",),
        "assisted",
        "tensorflow.python.keras is an old copy of Keras that does not fit tf.keras.",
        "`tf.keras.{rest}`",
        run="answers with tf_keras",
    ),
    Rule(
        "PRIVATE",
        ("tensorflow.python",),
        "assisted",
        _PRIVATE,
        "the public name",
        run="imports it as it is",
    ),
)

# Reason codes of findings that are about more than a name.
OTHER_CODES = {
    "HOOK_NAME": (
        "auto",
        "A hook's name that died with Estimator, as tf_upgrade_v2 of 2.15 writes it.",
    ),
    "V1_NAME": ("auto", "TensorFlow 1 had this name; it is in tf.compat.v1."),
    "MISSING": ("manual", "TensorFlow has no such name, and no rule knows it."),
    "DEVICE_FUNCTION": ("auto", "tf.device takes no function; that of v1 does."),
    "V1_BEHAVIOUR": ("assisted", "The code needs the v1 behaviour of TensorFlow."),
    "OLD_ARGUMENT": ("auto", "An argument or a method has another name today."),
    "CLUSTER": ("bridge", "A hand-made cluster of v1 servers; one stop ends none."),
    "SUPERVISOR": ("manual", "Supervisor runs no hooks."),
    "HOOK_CLASS": ("bridge", "A hook: runs in `fit` through `hb.as_callbacks`."),
    "CALLBACK_CLASS": ("bridge", "A callback: runs in a session by `hb.as_hooks`."),
    "HOOK_SITE": ("fine", "A place that takes hooks: `hb.as_hooks` fits in."),
    "CALLBACK_SITE": ("fine", "A place that takes callbacks: `hb.as_callbacks` does."),
    "FETCH_RUN": ("bridge", "A run that trains nothing and fires every hook."),
    "SLIM_BROKEN": (
        "assisted",
        "This function of tf_slim 1.1 asks TensorFlow for names that are gone.",
    ),
    "STEPS_PER_EPOCH": (
        "assisted",
        "Callbacks with epochs need as_hooks(..., steps_per_epoch=...) in a session.",
    ),
    "NATIVE_CLASS": ("assisted", "A hook of pure Python that `--native` left a hook."),
    "STAR_IMPORT": ("manual", "Names of a starred import cannot be followed."),
}

# Reason code -> what `hookbridge run` does about it; the others are left as they are.
OTHER_RUN = {
    "HOOK_NAME": "brings it back in its place",
    "V1_NAME": "answers with tf.compat.v1",
    "DEVICE_FUNCTION": "takes functions too",
    "V1_BEHAVIOUR": "switches the v1 behaviour on",
    "OLD_ARGUMENT": "takes the old argument or method",
    "CLUSTER": "starts the servers as they are",
    "SUPERVISOR": "runs it as it is, without guests",
}


def rule_for(name: str) -> tuple[Rule, str] | None:
    """The rule of a canonical name and the prefix that matched, or None."""
    found: tuple[Rule, str] | None = None
    for rule in RULES:
        prefix = rule.match(name)
        if prefix is not None and (found is None or len(prefix) > len(found[1])):
            found = rule, prefix
    return found


def found_at(
    source: Source,
    node: ast.AST,
    code: str,
    name: str,
    way_out: str,
    details: dict[str, object] | None = None,
) -> Finding:
    """A finding of one of `OTHER_CODES` at a node."""
    verdict, message = OTHER_CODES[code]
    return Finding(
        file=source.file,
        line=getattr(node, "lineno", 1),
        column=getattr(node, "col_offset", 0) + 1,
        code=code,
        verdict=verdict,
        name=name,
        message=message,
        way_out=way_out,
        cell=source.cell,
        details=details or {},
    )
