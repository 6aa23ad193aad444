"""The code bases of README.md, which `code_bases.json` lists."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple


class CodeBase(NamedTuple):
    """A code base that somebody else wrote.

    Attributes:
      address: of its repository.
      revision: the commit that README.md speaks of.
      tests: what pytest gets.
      programs: command lines, run one after another; `{out}` is a folder.
      inputs: the function of inputs.py that writes what the programs read.
      needs: `{module that it imports: distribution that has it}`.
      hooks: the function of guests.py with hooks of it, which run in both loops.
      options: of `hookbridge run`, for the programs.
      is_package: whether its imports name the copy's own folder.
      paths: folders of it that Python has to find modules in.
      losses: the programs of `--losses`: trainings, and what prepares them.
      told: trainings of `--losses` without an Estimator, which write their losses
        to `{out}/NAME.losses` themselves, one a line.
    """

    address: str
    revision: str
    tests: Sequence[str] = ()
    programs: Sequence[str] = ()
    inputs: str = "nothing"
    needs: Mapping[str, str] = MappingProxyType({})
    hooks: str = ""
    options: Sequence[str] = ()
    is_package: bool = False
    paths: Sequence[str] = ()
    losses: Sequence[str] = ()
    told: Sequence[str] = ()


_TABLE = Path(__file__).with_suffix(".json").read_text("utf-8")
CODE_BASES = {name: CodeBase(**row) for name, row in json.loads(_TABLE).items()}
