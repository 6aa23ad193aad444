"""The code bases of docs/proof.md: where they are, and what of them runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import inputs

_TEXT = (
    "--max_seq_length=32 --max_predictions_per_seq=5 --input_file={out}/text.tfrecord "
    "--output_dir={out}/pretrained --do_train --do_eval --train_batch_size=8 "
    "--eval_batch_size=8 --num_train_steps=20 --num_warmup_steps=5 --max_eval_steps=5 "
    "--save_checkpoints_steps=10"
)
_COLA = (
    "--task_name=cola --do_train --do_eval --do_predict --vocab_file={out}/vocab.txt "
    "--init_checkpoint={out}/pretrained/model.ckpt-20 --max_seq_length=32 "
    "--train_batch_size=8 --learning_rate=1e-3 --output_dir={out}/classified"
)
_ELECTRA = '{"debug":true,"vocab_size":%d,"max_seq_length":32,%s}'

_REVERSE = (
    "--problem=algorithmic_reverse_binary40 --data_dir={out}/data "
    "--output_dir={out}/model --model=transformer --hparams_set=transformer_tiny"
)


# The rate stays as it is: BERT and its heirs read the step before or after they raise
# it, in no order.
_STEADY = (
    "--num_train_steps=100000000 --num_warmup_steps=0 --learning_rate=1e-3 --nodo_eval"
)
_DATA = (
    "--output_file={out}/text.tfrecord --vocab_file={out}/vocab.txt "
    "--max_seq_length=32 --max_predictions_per_seq=5 --dupe_factor=2"
)
_BERT = (
    f"create_pretraining_data.py --input_file=sample_text.txt {_DATA}",
    f"run_pretraining.py --bert_config_file={{out}}/config.json {_TEXT}",
)
_ALBERT = (
    f"-m albert.create_pretraining_data --input_file={{out}}/texts/text.txt {_DATA}",
    f"-m albert.run_pretraining {_TEXT} --albert_config_file={{out}}/config.json",
)


def _electra(program: str, more: str) -> str:
    hparams = _ELECTRA % (inputs.VOCABULARY, more)
    return f"{program} --data-dir={{out}} --model-name=tiny --hparams='{hparams}'"


def _official(program: str, data: str, more: str) -> str:
    return (
        f"official/{program}.py --data_dir={{out}}/{data} "
        f"--model_dir={{out}}/{data}-run --export_dir={{out}}/{data}-export "
        f"--train_epochs=1 --batch_size=10 {more}"
    )


_WIDE_AND_RESNET = (
    _official("wide_deep/census_main", "census", "--epochs_between_evals=1"),
    _official("resnet/cifar10_main", "cifar10", "--resnet_size=8"),
)


def _easy_rec(model: str) -> tuple[str, ...]:
    config = f"--pipeline_config_path={{out}}/{model}.config"
    return (
        f"-m easy_rec.python.train_eval {config}",
        f"-m easy_rec.python.export {config} --export_dir={{out}}/{model}-export",
        f"-m easy_rec.python.predict {config} --input_path={{out}}/data.csv "
        f"--output_path={{out}}/{model}.json",
    )


class CodeBase(NamedTuple):
    """A code base that somebody else wrote.

    Attributes:
      address: of its repository.
      revision: the commit that docs/proof.md speaks of.
      tests: what pytest gets.
      programs: command lines, run one after another; `{out}` is a folder.
      inputs: writes what the programs read: `(python, copy, out) -> None`.
      needs: modules that it imports, and the distributions that have them.
      hooks: the function of guests.py with hooks of it, which run in both loops.
      options: of `hookbridge run`, for the programs.
      is_package: whether its imports name the copy's own folder.
      losses: the programs of `--losses`: trainings, and what prepares them.
    """

    address: str
    revision: str
    tests: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    inputs: Callable[[str, Path, Path], None] | None = None
    needs: tuple[tuple[str, str], ...] = ()
    hooks: str = ""
    options: tuple[str, ...] = ()
    is_package: bool = False
    losses: tuple[str, ...] = ()


CODE_BASES = {
    "ranking": CodeBase(
        "https://github.com/tensorflow/ranking",
        "5b1d133",
        tuple(
            f"tensorflow_ranking/python/{name}_test.py"
            for name in ("estimator", "head", "model", "feature")
        ),
        needs=(("tensorflow_serving", "tensorflow-serving-api"),),
    ),
    "tf-slim": CodeBase(
        "https://github.com/google-research/tf-slim",
        "1287b1e",
        (
            *("tf_slim/learning_test.py", "tf_slim/evaluation_test.py"),
            *("tf_slim/training", "tf_slim/summaries_test.py"),
        ),
        needs=(("nose", "pynose"),),
    ),
    "adanet": CodeBase(
        "https://github.com/tensorflow/adanet",
        "0364cc4",
        (
            *("adanet/ensemble", "adanet/subnetwork", "adanet/distributed"),
            *("adanet/core/iteration_test.py", "adanet/core/ensemble_builder_test.py"),
            *("adanet/core/candidate_test.py", "adanet/core/summary_test.py"),
            *("adanet/core/evaluator_test.py", "adanet/core/eval_metrics_test.py"),
            *("adanet/core/estimator_test.py", "adanet/core/report_accessor_test.py"),
            *("adanet/core/report_materializer_test.py", "adanet/core/timer_test.py"),
            *("adanet/core/architecture_test.py", "adanet/autoensemble"),
        ),
        needs=(("nose", "pynose"), ("mock", "mock")),
    ),
    "privacy": CodeBase(
        "https://github.com/tensorflow/privacy",
        "03035d5",
        (
            "tensorflow_privacy/privacy/optimizers/dp_optimizer_test.py",
            "tensorflow_privacy/privacy/optimizers/dp_optimizer_vectorized_test.py",
            "tensorflow_privacy/privacy/estimators/v1",
        ),
        needs=(("dp_accounting", "dp-accounting"), ("sklearn", "scikit-learn")),
    ),
    "OpenNMT-tf": CodeBase(
        "https://github.com/OpenNMT/OpenNMT-tf",
        "v1.25.3",
        tuple(
            f"opennmt/tests/{name}_test.py"
            for name in (
                *("decoder", "encoder", "rnn", "reducer", "optim", "model", "hooks"),
                *("bridge", "transformer", "runner"),
            )
        ),
        programs=(
            *(
                f"-m opennmt.bin.main {run} --config {{out}}/config.yml "
                f"--model {{out}}/model.py {more}"
                for run, more in (
                    ("train_and_eval", ""),
                    ("infer", "--features_file {out}/source.txt"),
                    ("export", "--export_dir_base {out}/export"),
                )
            ),
        ),
        inputs=inputs.translations,
        losses=(
            "-m opennmt.bin.main train --config {out}/config.yml "
            "--model {out}/model.py",
        ),
        hooks="opennmt",
        needs=(("parameterized", "parameterized"), ("rouge", "rouge==0.3.1")),
    ),
    "tensor2tensor": CodeBase(
        "https://github.com/tensorflow/tensor2tensor",
        "bafdc1b",
        programs=(
            f"-m tensor2tensor.bin.t2t_trainer {_REVERSE} --generate_data "
            "--hparams=batch_size=256 --train_steps=20 "
            "--eval_steps=3",
            f"-m tensor2tensor.bin.t2t_decoder {_REVERSE} "
            "--decode_hparams=beam_size=2,num_samples=4",
            f"-m tensor2tensor.serving.export {_REVERSE}",
        ),
        # Without a seed of its own, it shuffles the files anew in each run.
        losses=(
            f"-m tensor2tensor.bin.t2t_trainer {_REVERSE} --generate_data "
            "--random_seed=1 --hparams=batch_size=256 --train_steps=100000 "
            "--schedule=train",
        ),
        hooks="tensor2tensor",
        options=("--old_library=mesh_tensorflow",),
        needs=(
            ("gym", "gym==0.14.0"),
            ("mesh_tensorflow", "mesh-tensorflow"),
            ("tensorflow_datasets", "tensorflow-datasets"),
            ("tensorflow_hub", "tensorflow-hub"),
            ("oauth2client", "oauth2client"),
            ("googleapiclient", "google-api-python-client"),
            ("sympy", "sympy"),
            ("pkg_resources", "'setuptools<80'"),
        ),
    ),
    "monolith": CodeBase(
        "https://github.com/bytedance/monolith",
        "135c491",
        tuple(
            f"monolith/native_training/{name}_test.py"
            for name in (
                *("barrier_ops", "basic_restore_hook", "session_run_hooks"),
                *("sync_hooks", "hooks/session_hooks"),
            )
        ),
        inputs=inputs.bazel,
        hooks="monolith",
        needs=(("freezegun", "freezegun"), ("grpc_tools", "grpcio-tools")),
    ),
    "bert": CodeBase(
        "https://github.com/google-research/bert",
        "eedf571",
        programs=(
            *("modeling_test.py", "optimization_test.py", "tokenization_test.py"),
            *_BERT,
            f"run_classifier.py --bert_config_file={{out}}/config.json {_COLA} "
            "--data_dir={out}/CoLA --num_train_epochs=2",
        ),
        inputs=inputs.text,
        losses=(_BERT[0], f"{_BERT[1]} {_STEADY}"),
    ),
    "electra": CodeBase(
        "https://github.com/google-research/electra",
        "8a46635",
        programs=(
            "build_pretraining_dataset.py --corpus-dir={out}/texts "
            "--vocab-file={out}/vocab.txt --output-dir={out}/pretrain_tfrecords "
            "--max-seq-length=32 --num-processes=1",
            _electra("run_pretraining.py", '"do_train":true'),
            _electra(
                "run_pretraining.py",
                '"do_train":false,"do_eval":true,"num_eval_steps":5',
            ),
            _electra("run_finetuning.py", '"model_size":"small","task_names":["cola"]'),
        ),
        inputs=inputs.text,
        needs=(("scipy", "scipy"), ("sklearn", "scikit-learn")),
    ),
    "albert": CodeBase(
        "https://github.com/google-research/albert",
        "b772393",
        programs=(
            *_ALBERT,
            f"-m albert.run_classifier {_COLA} "
            "--albert_config_file={out}/config.json "
            "--spm_model_file={out}/spm.model --data_dir={out} --train_step=16 "
            "--save_checkpoints_steps=8 --warmup_step=2 --cached_dir={out} "
            "--export_dir={out}/export",
        ),
        inputs=inputs.text_and_pieces,
        needs=(
            ("tensorflow_hub", "tensorflow-hub"),
            ("sentencepiece", "sentencepiece"),
            ("pkg_resources", "'setuptools<80'"),
        ),
        is_package=True,
        losses=(_ALBERT[0], f"{_ALBERT[1]} {_STEADY}"),
    ),
    "EasyRec": CodeBase(
        "https://github.com/alibaba/EasyRec",
        "bd230cb1",
        programs=(*_easy_rec("deepfm"), *_easy_rec("mmoe")),
        losses=(_easy_rec("deepfm")[0], _easy_rec("mmoe")[0]),
        inputs=inputs.ratings,
        hooks="easy_rec",
        needs=(
            ("grpc_tools", "grpcio-tools"),
            ("pandas", "pandas"),
            ("tensorflow_probability", "tensorflow-probability"),
        ),
    ),
    "models": CodeBase(
        "https://github.com/tensorflow/models",
        "91b2debd",
        programs=(_official("mnist/mnist", "mnist", ""), *_WIDE_AND_RESNET),
        losses=_WIDE_AND_RESNET,
        inputs=inputs.official,
        options=("--guests={out}/guests.py", "--steps_per_epoch=5"),
        needs=(("requests", "requests"), ("tensorboard", "tensorboard")),
    ),
}
