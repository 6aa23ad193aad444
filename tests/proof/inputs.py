"""Small inputs for the programs of code bases."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

# Vocabularies are filled up to this size.
VOCABULARY = 400
_WORDS = [a + b + c for a in "bdfgklmnprst" for b in "aeiou" for c in "nrst"]
_TRANSFORMER = {
    "attention_probs_dropout_prob": 0.0,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "type_vocab_size": 2,
    "vocab_size": VOCABULARY,
    # ALBERT's own
    "embedding_size": 16,
    "num_hidden_groups": 1,
    "inner_group_num": 1,
}


def text(python: str, copy: Path, out: Path) -> None:
    """Texts, a vocabulary, the task CoLA and a small transformer's configuration."""
    numbers = random.Random(1)

    def sentence(words: list[str]) -> str:
        return " ".join(numbers.choices(words, k=8)) + " ."

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "."]
    words = [*special, *_WORDS]
    words += [f"[unused{n}]" for n in range(VOCABULARY - len(words))]
    (out / "vocab.txt").write_text("\n".join(words) + "\n")
    (out / "config.json").write_text(json.dumps(_TRANSFORMER))
    documents = [
        "\n".join(sentence(_WORDS) for _ in range(8)) + "\n" for _ in range(12)
    ]
    folders = [out / "texts", out / "CoLA", out / "finetuning_data" / "cola"]
    for folder in folders:
        folder.mkdir(parents=True)
    (out / "texts" / "text.txt").write_text("\n".join(documents))
    for folder in folders[1:]:
        for name, count in (("train", 64), ("dev", 16), ("test", 8)):
            rows = ["id\tsentence"] if name == "test" else []
            for n in range(count):
                label = numbers.randrange(2)
                said = sentence(_WORDS[:40] if label else _WORDS[40:80])
                rows.append(
                    f"{n}\t{said}" if name == "test" else f"x{n}\t{label}\t*\t{said}"
                )
            (folder / f"{name}.tsv").write_text("\n".join(rows) + "\n")


def text_and_pieces(python: str, copy: Path, out: Path) -> None:
    """The same with a model of word pieces."""
    import sentencepiece  # type: ignore[import-not-found, unused-ignore]

    text(python, copy, out)
    sentencepiece.SentencePieceTrainer.train(
        input=str(out / "texts" / "text.txt"),
        model_prefix=str(out / "spm"),
        vocab_size=100,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols="[CLS],[SEP],[MASK]",
        hard_vocab_limit=False,
        minloglevel=2,
    )


def translations(python: str, copy: Path, out: Path) -> None:
    """Sentences with a translation, vocabularies, a small model, a configuration."""
    numbers = random.Random(2)
    sources, targets = _WORDS[:40], _WORDS[40:80]
    for name, words in (("source", sources), ("target", targets)):
        special = ["<blank>", "<s>", "</s>"]
        (out / f"{name}.vocab").write_text("\n".join([*special, *words]) + "\n")
    pairs = [numbers.choices(range(40), k=numbers.randint(3, 6)) for _ in range(64)]
    for name, words in (("source", sources), ("target", targets)):
        lines = [" ".join(words[n] for n in pair) for pair in pairs]
        (out / f"{name}.txt").write_text("\n".join(lines) + "\n")
    (out / "model.py").write_text(_SEQUENCES)
    (out / "config.yml").write_text(_OPENNMT.format(out=out))


_SEQUENCES = """
import tensorflow as tf
import opennmt as onmt

def model():
    return onmt.models.SequenceToSequence(
        source_inputter=onmt.inputters.WordEmbedder("source_vocabulary", 16),
        target_inputter=onmt.inputters.WordEmbedder("target_vocabulary", 16),
        encoder=onmt.encoders.BidirectionalRNNEncoder(1, 16, dropout=0.0),
        decoder=onmt.decoders.AttentionalRNNDecoder(
            1, 16, dropout=0.0, bridge=onmt.layers.CopyBridge(),
            attention_mechanism_class=tf.contrib.seq2seq.LuongAttention,
        ),
    )
"""
_OPENNMT = """
model_dir: {out}/run
data:
  train_features_file: {out}/source.txt
  train_labels_file: {out}/target.txt
  eval_features_file: {out}/source.txt
  eval_labels_file: {out}/target.txt
  source_vocabulary: {out}/source.vocab
  target_vocabulary: {out}/target.vocab
params:
  optimizer: AdamOptimizer
  learning_rate: 0.01
  beam_width: 2
  maximum_iterations: 10
train:
  batch_size: 16
  save_checkpoints_steps: 10
  save_summary_steps: 10
  train_steps: 20
eval:
  batch_size: 16
  eval_delay: 0
  exporters: last
"""


_MESSAGES = (
    *("hooks/controller_hooks", "hooks/ckpt_hooks", "alert/alert"),
    *("monolith_checkpoint_state", "runtime/ops/logging_ops"),
)


def bazel(python: str, copy: Path, out: Path) -> None:
    """Monolith as its build lays it out: packages are empty, messages are built."""
    (copy / "monolith" / "__init__.py").write_text("")
    protos = [str(copy / f"monolith/native_training/{m}.proto") for m in _MESSAGES]
    words = ["-m", "grpc_tools.protoc", f"-I{copy}", f"--python_out={copy}"]
    subprocess.run([python, *words, *protos], check=True)


_FIELDS = {
    "click": "INT64",
    "buy": "INT64",
    "user": "STRING",
    "item": "STRING",
    "price": "DOUBLE",
}
_FEATURES = 'feature_names: "user" feature_names: "item" feature_names: "price"'
_EASY_REC = """
train_input_path: "{out}/data.csv"
eval_input_path: "{out}/data.csv"
model_dir: "{out}/{name}"
train_config {{
  optimizer_config {{
    adam_optimizer {{
      learning_rate {{ constant_learning_rate {{ learning_rate: 0.01 }} }}
    }}
  }}
  save_checkpoints_steps: 20
  num_steps: 40
}}
eval_config {{ metrics_set {{ auc {{}} }} }}
data_config {{
  {fields}
  label_fields: [{labels}]
  batch_size: 32
  input_type: CSVInput
}}
feature_config {{
  features {{
    input_names: "user" feature_type: IdFeature embedding_dim: 8 hash_bucket_size: 50
  }}
  features {{
    input_names: "item" feature_type: IdFeature embedding_dim: 8 hash_bucket_size: 50
  }}
  features {{ input_names: "price" feature_type: RawFeature {price} }}
}}
model_config {{ {model} }}
export_config {{}}
"""
_DEEPFM = f"""
  model_class: "DeepFM"
  feature_groups {{ group_name: "deep" {_FEATURES} wide_deep: DEEP }}
  feature_groups {{ group_name: "wide" {_FEATURES} wide_deep: WIDE }}
  deepfm {{
    dnn {{ hidden_units: [16, 8] }} final_dnn {{ hidden_units: [8] }} wide_output_dim: 4
  }}
"""
_EXPERT = 'experts {{ expert_name: "{}" dnn {{ hidden_units: [16, 8] }} }}'
_TOWER = (
    'task_towers {{ tower_name: "{0}" label_name: "{0}" num_class: 1 '
    "dnn {{ hidden_units: [8] }} metrics_set {{ auc {{}} }} }}"
)
_MMOE = f"""
  model_class: "MMoE"
  feature_groups {{ group_name: "all" {_FEATURES} wide_deep: DEEP }}
  mmoe {{
    {_EXPERT.format("a")} {_EXPERT.format("b")}
    {_TOWER.format("click")} {_TOWER.format("buy")}
  }}
"""


def ratings(python: str, copy: Path, out: Path) -> None:
    """EasyRec's protocol buffers, a table of clicks, a DeepFM and an MMoE."""
    protos = sorted(map(str, copy.glob("easy_rec/python/protos/*.proto")))
    words = ["-m", "grpc_tools.protoc", f"-I{copy}", f"--python_out={copy}"]
    subprocess.run([python, *words, *protos], check=True)
    numbers, rows = random.Random(3), []
    for _ in range(400):
        user, item, price = (
            numbers.randrange(20),
            numbers.randrange(30),
            numbers.random(),
        )
        click = (user + item) % 3 == 0 or price > 0.8
        buy = click and price > 0.5
        rows.append(f"{click:d},{buy:d},u{user},i{item},{price:.3f}")
    (out / "data.csv").write_text("\n".join(rows) + "\n")
    fields = "\n  ".join(
        f'input_fields {{ input_name: "{name}" input_type: {kind} default_val: "0" }}'
        for name, kind in _FIELDS.items()
    )
    for name, model, labels, of_price in (
        ("deepfm", _DEEPFM, '"click"', "boundaries: [0.3, 0.6] embedding_dim: 8"),
        ("mmoe", _MMOE, '"click", "buy"', ""),
    ):
        made = _EASY_REC.format(
            out=out,
            name=name,
            fields=fields,
            labels=labels,
            price=of_price,
            model=model,
        )
        (out / f"{name}.config").write_text(made)


_OUTSIDE = """
import tensorflow as tf

board = tf.keras.callbacks.TensorBoard({board!r})
guests = [tf.keras.callbacks.EarlyStopping("loss", min_delta=100.0), board]
"""


def official(python: str, copy: Path, out: Path) -> None:
    """Digits, incomes and images of noise, and guests that stop at the second epoch."""
    numbers = random.Random(4)
    digits, incomes = out / "mnist", out / "census"
    images = out / "cifar10" / "cifar-10-batches-bin"
    for folder in (digits, incomes, images):
        folder.mkdir(parents=True)
    for name, count in (("train", 200), ("t10k", 40)):
        labels = bytes(numbers.randrange(10) for _ in range(count))
        for kind, head, body in (
            ("images-idx3", (2051, count, 28, 28), numbers.randbytes(784 * count)),
            ("labels-idx1", (2049, count), labels),
        ):
            start = b"".join(number.to_bytes(4, "big") for number in head)
            (digits / f"{name}-{kind}-ubyte").write_bytes(start + body)
    for name in ("adult.data", "adult.test"):
        rows = []
        for _ in range(200):
            age, hours = numbers.randrange(17, 80), numbers.randrange(10, 60)
            income = ">50K" if age + hours > 90 else "<=50K"
            of_work = "Private,7,Bachelors,13,Divorced,Sales,Husband,White,Male,0,0"
            rows.append(f"{age},{of_work},{hours},Peru,{income}")
        (incomes / name).write_text("\n".join(rows) + "\n")
    for name in (*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"):
        pictures = (
            bytes([numbers.randrange(10)]) + numbers.randbytes(3072) for _ in range(40)
        )
        (images / f"{name}.bin").write_bytes(b"".join(pictures))
    (out / "guests.py").write_text(_OUTSIDE.format(board=str(out / "board")))
