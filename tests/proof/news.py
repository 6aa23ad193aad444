"""News and who read them, for the code base recommenders."""

from __future__ import annotations

import pickle
import random
from pathlib import Path


def of_news(out: Path, numbers: random.Random, words: list[str]) -> None:
    """News that 20 readers clicked on, as DKN's files and as the others' have them."""
    readers = [f"reader{n}" for n in range(20)]
    for name, keys in (
        ("words", words),
        ("readers", readers),
        ("verticals", [f"vertical{n}" for n in range(5)]),
    ):
        numbered = {key: n for n, key in enumerate(keys, start=name != "readers")}
        (out / f"{name}.pkl").write_bytes(pickle.dumps(numbered, protocol=2))
    features, news = [], []
    for n in range(30):
        title = numbers.choices(range(len(words)), k=6)
        entities = numbers.choices(range(11), k=6)
        first = ",".join(str(one + 1) for one in title)
        features.append(f"N{n} {first} {','.join(map(str, entities))}")
        kind, text = f"vertical{n % 5}", " ".join(words[one] for one in title)
        body = " ".join(numbers.choices(words, k=8))
        news.append("\t".join([f"N{n}", kind, kind, text, body, "", "[]", "[]"]))
    histories: list[str] = []
    clicks: list[str] = []
    behaviors: list[str] = []
    for name in readers:
        before = [f"N{n}" for n in numbers.sample(range(30), 3)]
        histories.append(f"{name} {','.join(before)}")
        for _ in range(4):
            shown = numbers.sample(range(30), 5)
            labels = [int(place == 0) for place in range(5)]
            pairs = list(zip(shown, labels, strict=True))
            number = len(behaviors)
            clicks += [f"{label} {name} N{n}%{number}" for n, label in pairs]
            seen = " ".join(f"N{n}-{label}" for n, label in pairs)
            line = [str(number), name, "1/1/2020", " ".join(before), seen]
            behaviors.append("\t".join(line))
    for file, lines in (
        ("news_features.txt", features),
        ("histories.txt", histories),
        ("news_clicks.txt", clicks),
        ("news.tsv", news),
        ("behaviors.tsv", behaviors),
    ):
        (out / file).write_text("\n".join(lines) + "\n")
