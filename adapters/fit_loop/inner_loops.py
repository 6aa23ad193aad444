"""Loops and single steps that a callback starts on the model of a running loop."""

from __future__ import annotations

import sys
import traceback
from typing import Any

LOOPS = ("fit", "evaluate", "predict")
# What starts them. A step on a batch uses the function of the loop, as a loop does.
STARTERS = (*LOOPS, "train_on_batch", "test_on_batch", "predict_on_batch")


def is_running(model: Any) -> bool:
    """Whether this is called from within a loop of `model`.

    The stack of frames is asked, since a loop that an exception ends tells nobody.
    """
    return any(
        frame.f_code.co_name in LOOPS
        and frame.f_code.co_argcount
        and frame.f_locals.get(frame.f_code.co_varnames[0]) is model
        for frame, _ in traceback.walk_stack(sys._getframe(1))
    )
