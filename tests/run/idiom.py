"""What a program is put together from: lines of its main file, and other files."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

TF = "import tensorflow as tf\n"


class Idiom(NamedTuple):
    """A way in which programs are written.

    Attributes:
      main: its lines in the main file, which has imported `tensorflow as tf`.
      files: other files that it needs, `{path: text}`.
      runs: whether it ends without an error under `hookbridge run`.
    """

    main: str
    files: Mapping[str, str] = MappingProxyType({})
    runs: bool = True
