"""Random lists of stock guests do through hookbridge what they do natively.

A failure is printed as a short program. `fuzz.py` runs the same for longer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import guest_code
import hypothesis
import pytest
from hypothesis import strategies as st
from observed import callbacks_seen, compared, hooks_seen, program
from one_keras import one_keras

Options = dict[str, Any]

CALLBACK_RUNS = st.tuples(
    st.lists(guest_code.CALLBACKS, max_size=4),
    st.fixed_dictionaries(
        {"epochs": st.integers(1, 6), "rate": st.sampled_from([0.01, 0.1, 0.3])}
    ),
)
_NO_OPTIONS: st.SearchStrategy[Options] = st.just({})
HOOK_RUNS = st.tuples(st.lists(guest_code.HOOKS, max_size=4), _NO_OPTIONS)
LOOPS = ((CALLBACK_RUNS, callbacks_seen), (HOOK_RUNS, hooks_seen))
SETTINGS = hypothesis.settings(
    max_examples=8,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[hypothesis.Phase.generate],  # `difference` makes failures smaller itself
    suppress_health_check=list(hypothesis.HealthCheck),
)


def difference(
    seen: Callable[..., Any], keras: Any, run: tuple[list[str], Options]
) -> str:
    """What both loops show differently, as a program with few guests; empty if nothing.

    Args:
      seen: runs guests and returns what is seen.
      keras: the Keras of the model.
      run: the guests as expressions, and the options of the run.
    """
    codes, options = run
    found = compared(seen, codes, keras, options)
    if not found:
        return ""
    for code in list(codes):
        fewer = [other for other in codes if other is not code]
        without = compared(seen, fewer, keras, options)
        if without:
            codes, found = fewer, without
    shown = "\n".join(f"# {line}" for line in found[:5])
    return f"{program(seen, codes, keras.__name__, options)}\n{shown}"


@pytest.mark.slow
@one_keras
@pytest.mark.parametrize("loop", LOOPS, ids=["callbacks", "hooks"])
def test_both_loops_show_the_same(keras: Any, loop: Any) -> None:
    runs, seen = loop

    @SETTINGS
    @hypothesis.given(runs)
    def check(run: tuple[list[str], Options]) -> None:
        text = difference(seen, keras, run)
        if text:
            pytest.fail(text, pytrace=False)

    check()
