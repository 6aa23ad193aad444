"""Small inputs for the programs of code bases."""

from __future__ import annotations

import gzip
import pickle
import random
import re
import subprocess
import wave
from pathlib import Path

import samples
from news import of_news

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


def houses_and_digits(python: str, copy: Path, out: Path) -> None:
    """Houses, and digits in MNIST's files and as records."""
    samples.houses(out)
    samples.pictures(out)
    samples.records(out)


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


def digits(python: str, copy: Path, out: Path) -> None:
    """Pictures of ten digits as MNIST has them, where the notebooks look for them.

    Each digit is a picture of noise; a folder that is there already stays as it is.
    """
    numbers = random.Random(5)
    pictures = [
        bytes(b if numbers.random() < 0.3 else 0 for b in numbers.randbytes(784))
        for _ in range(10)
    ]
    files = {}
    for name, count in (("train", 6000), ("t10k", 1000)):
        labels = bytes(numbers.randrange(10) for _ in range(count))
        # One in ten is another digit than its label says: notebooks show mistakes.
        body = b"".join(
            pictures[label if numbers.random() < 0.9 else numbers.randrange(10)]
            for label in labels
        )
        for kind, head, content in (
            ("images-idx3", (2051, count, 28, 28), body),
            ("labels-idx1", (2049, count), labels),
        ):
            start = b"".join(number.to_bytes(4, "big") for number in head)
            files[f"{name}-{kind}-ubyte.gz"] = gzip.compress(start + content, mtime=0)
    places = {notebook.parent for notebook in copy.rglob("*.ipynb")}
    folders = [p / name for p in places for name in ("MNIST_data", "data", "MNIST")]
    for folder in (Path("/tmp/data"), *folders):
        folder.mkdir(exist_ok=True)
        for name, content in files.items():
            if not (folder / name).exists():
                (folder / name).write_bytes(content)


def detections(python: str, copy: Path, out: Path) -> None:
    """Pictures with one box each, and two configurations of the zoo for them.

    The configurations are the code base's own, with small pictures and batches, and
    without a checkpoint to begin with. Its tests read flags, which pytest does not
    parse: they get their defaults.
    """
    import tensorflow as tf

    from_templates(copy, "conftest.py.txt")
    protos = sorted(map(str, copy.glob("object_detection/protos/*.proto")))
    words = ["-m", "grpc_tools.protoc", f"-I{copy}", f"--python_out={copy}"]
    subprocess.run([python, *words, *protos], check=True)
    numbers = random.Random(6)

    def of_bytes(*values: bytes) -> tf.train.Feature:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))

    def of_floats(*values: float) -> tf.train.Feature:
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))

    def of_numbers(*values: int) -> tf.train.Feature:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    def example(number: int) -> bytes:
        size, label = 160, numbers.randrange(1, 3)
        top, left = numbers.randrange(80), numbers.randrange(80)
        rows = [[[numbers.randrange(60)] * 3 for _ in range(size)] for _ in range(size)]
        for row in rows[top : top + 60]:
            row[left : left + 60] = [[200, 50 * label, 30] for _ in range(60)]
        picture = tf.io.encode_jpeg(tf.constant(rows, tf.uint8)).numpy()
        features = {
            "image/height": of_numbers(size),
            "image/width": of_numbers(size),
            "image/filename": of_bytes(b"%d.jpg" % number),
            "image/source_id": of_bytes(b"%d" % number),
            "image/encoded": of_bytes(picture),
            "image/format": of_bytes(b"jpeg"),
            "image/object/bbox/xmin": of_floats(left / size),
            "image/object/bbox/xmax": of_floats((left + 60) / size),
            "image/object/bbox/ymin": of_floats(top / size),
            "image/object/bbox/ymax": of_floats((top + 60) / size),
            "image/object/class/text": of_bytes(b"a%d" % label),
            "image/object/class/label": of_numbers(label),
        }
        whole = tf.train.Example(features=tf.train.Features(feature=features))
        content: bytes = whole.SerializeToString()
        return content

    for name, count in (("train", 24), ("val", 8)):
        with tf.io.TFRecordWriter(str(out / f"{name}.record")) as writer:
            for number in range(count):
                writer.write(example(number))
    labels = copy / "object_detection/data/mscoco_label_map.pbtxt"
    places = {
        r".*fine_tune_checkpoint.*|.*from_detection_checkpoint.*": "",
        r"PATH_TO_BE_CONFIGURED/mscoco_(train|val)\.record[^\"]*": rf"{out}/\1.record",
        r"PATH_TO_BE_CONFIGURED/mscoco_label_map.pbtxt": str(labels),
        r"batch_size: 24": "batch_size: 2",
        r"num_examples: 8000": "num_examples: 8",
        r"min_dimension: 600": "min_dimension: 160",
        r"max_dimension: 1024": "max_dimension: 160",
    }
    folder = copy / "object_detection/samples/configs"
    for name in ("ssd_mobilenet_v2_coco", "faster_rcnn_resnet50_coco"):
        text = (folder / f"{name}.config").read_text()
        for old, new in places.items():
            text = re.sub(old, new, text)
        (out / f"{name}.config").write_text(text)


def recommendations(python: str, copy: Path, out: Path) -> None:
    """Clicks for an xDeepFM; what users looked at, with vocabularies, for a SLi-Rec.

    Also news with words and entities, and who read them, for a DKN, a NAML, an LSTUR.
    """
    numbers = random.Random(7)
    rows = []
    for _ in range(320):
        user, item = numbers.randrange(20), numbers.randrange(30)
        click = int((user + item) % 3 == 0)
        rows.append(f"{click} 1:{user + 1}:1 2:{item + 21}:1")
    (out / "clicks.ffm").write_text("\n".join(rows) + "\n")
    for name, count in (("user", 20), ("item", 30), ("cate", 5)):
        words = {f"{name}{n}": n for n in range(count)}
        (out / f"{name}s.pkl").write_bytes(pickle.dumps(words, protocol=2))

    def row(label: int, user: int, item: int) -> str:
        before = [numbers.randrange(30) for _ in range(numbers.randint(2, 6))]
        words = [str(label), f"user{user}", f"item{item}", f"cate{item % 5}", "900000"]
        words.append(",".join(f"item{one}" for one in before))
        words.append(",".join(f"cate{one % 5}" for one in before))
        words.append(",".join(str(100000 * n) for n in range(len(before))))
        return "\t".join(words)

    seen = [row(1, n % 20, numbers.randrange(30)) for n in range(160)]
    (out / "looked_at.txt").write_text("\n".join(seen) + "\n")
    groups = [
        row(int(n == 0), u, numbers.randrange(30)) for u in range(20) for n in range(5)
    ]
    (out / "valid.txt").write_text("\n".join(groups) + "\n")
    of_news(out, numbers, _WORDS[:40])
    names = ("first_losses", "xdeepfm", "slirec", "dkn", "naml", "lstur")
    from_templates(out, *(f"{name}.py.txt" for name in names))


def songs(python: str, copy: Path, out: Path) -> None:
    """Two songs of noise, six seconds each, and a configuration for them."""
    numbers = random.Random(8)
    names, rows = ("vocals", "other", "mix"), []
    for song in range(2):
        folder = out / f"song{song}"
        folder.mkdir()
        for name in names:
            with wave.open(str(folder / f"{name}.wav"), "wb") as file:
                file.setparams((2, 2, 44100, 0, "NONE", ""))
                file.writeframes(numbers.randbytes(4 * 44100 * 6))
        paths = [f"song{song}/{name}.wav" for name in ("mix", "vocals", "other")]
        rows.append(",".join([*paths, "6"]))
    head = "mix_path,vocals_path,other_path,duration"
    (out / "train.csv").write_text("\n".join([head, *rows]) + "\n")
    from_templates(out, "spleeter.json")
