"""Small inputs for the programs of code bases."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

# Vocabularies are filled up to this size.
VOCABULARY = 400
_WORDS = [a + b + c for a in "bdfgklmnprst" for b in "aeiou" for c in "nrst"]
TEMPLATES = Path(__file__).with_name("templates")


def from_templates(out: Path, *names: str) -> None:
    """Writes files of the folder `templates`, with the name of `out` in them."""
    for name in names:
        content = (TEMPLATES / name).read_text().replace("{out}", str(out))
        (out / name.removesuffix(".txt")).write_text(content)


def nothing(python: str, copy: Path, out: Path) -> None:
    """For code bases whose tests bring what they read."""


def text(python: str, copy: Path, out: Path) -> None:
    """Texts, a vocabulary, the task CoLA and a small transformer's configuration."""
    numbers = random.Random(1)

    def sentence(words: list[str]) -> str:
        return " ".join(numbers.choices(words, k=8)) + " ."

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "."]
    words = [*special, *_WORDS]
    words += [f"[unused{n}]" for n in range(VOCABULARY - len(words))]
    (out / "vocab.txt").write_text("\n".join(words) + "\n")
    from_templates(out, "config.json")
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
    from_templates(out, "model.py.txt", "config.yml")


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
    from_templates(out, "deepfm.config", "mmoe.config")


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
    from_templates(out, "guests.py.txt")
