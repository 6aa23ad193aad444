"""`tf.contrib.learn.preprocessing`: documents as rows of numbers of words."""

from __future__ import annotations

import collections
import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import numpy as np
import tensorflow as tf

TOKENIZER_RE = re.compile(
    r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE
)


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """Return the words of each document."""
    return map(TOKENIZER_RE.findall, iterator)


class CategoricalVocabulary:
    """Numbers of words, in the order in which they came; 0 is an unknown word."""

    def __init__(
        self, unknown_token: str = "<UNK>", support_reverse: bool = True
    ) -> None:
        self._unknown_token = unknown_token
        self._support_reverse = support_reverse
        self._counts: collections.Counter[Any] = collections.Counter()
        self._is_frozen = False
        # Programs of the time read both: `vocabulary_._mapping`.
        self._mapping: dict[Any, int] = {unknown_token: 0}
        self._reverse_mapping: list[Any] = [unknown_token]

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """Choose whether new words are unknown from now on."""
        self._is_frozen = freeze

    def get(self, category: Any) -> int:
        """Return the number of a word; a new word gets one."""
        if category not in self._mapping:
            if self._is_frozen:
                return 0
            self._mapping[category] = len(self._mapping)
            self._reverse_mapping.append(category)
        return self._mapping[category]

    def add(self, category: object, count: int = 1) -> None:
        """Count a word."""
        if self.get(category) > 0:
            self._counts[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Leave rare words out, and those that are too frequent.

        The others get new numbers: the most frequent word is the first.
        """
        counted = sorted(self._counts.items(), key=lambda one: str(one[0]))
        counted.sort(key=lambda one: -one[1])
        frequent = {
            word: count
            for word, count in counted
            if count > min_frequency and not 0 < max_frequency <= count
        }
        self._counts = collections.Counter(frequent)
        words = self._reverse_mapping = [self._unknown_token, *frequent]
        self._mapping = {word: number for number, word in enumerate(words)}

    def reverse(self, class_id: int) -> Any:
        """Return the word of a number."""
        if not self._support_reverse:
            raise ValueError(
                "This vocabulary wasn't initialized with support_reverse to support "
                "reverse() function."
            )
        return self._reverse_mapping[class_id]


class VocabularyProcessor:
    """Makes rows of equal length of documents, with the numbers of their words."""

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[str]], Iterable[Any]] | None = None,
    ) -> None:
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[str], unused_y: object = None) -> Any:
        """Learn the words of some documents; no later word is a known one."""
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(
        self, raw_documents: Iterable[str], unused_y: object = None
    ) -> Any:
        """Learn the words of some documents, and make rows of them."""
        self.fit(raw_documents)
        return self.transform(raw_documents)

    def transform(self, raw_documents: Iterable[str]) -> Iterator[Any]:
        """Yield a row for each document, filled up with 0."""
        for words in self._tokenizer(raw_documents):
            row = np.zeros(self.max_document_length, np.int64)
            for index, word in zip(
                range(self.max_document_length), words, strict=False
            ):
                row[index] = self.vocabulary_.get(word)
            yield row

    def reverse(self, documents: Iterable[Iterable[int]]) -> Iterator[str]:
        """Yield the documents of some rows."""
        for row in documents:
            yield " ".join(map(self.vocabulary_.reverse, row))

    def save(self, filename: str) -> None:
        """Write it to a file."""
        with tf.io.gfile.GFile(filename, "wb") as file:
            file.write(pickle.dumps(self))

    @classmethod
    def restore(cls, filename: str) -> VocabularyProcessor:
        """Return what `save` has written to a file."""
        with tf.io.gfile.GFile(filename, "rb") as file:
            return cast(VocabularyProcessor, pickle.loads(file.read()))
