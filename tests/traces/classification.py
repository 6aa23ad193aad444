"""What each of the recorded scenarios is in `fit`.

Every scenario is in one of three classes: *same*, *different because* and *has no
meaning*. A scenario that is in none of the tables here is *same* and runs in
`Model.fit` itself; one of `SESSION_ONLY` is *same* and runs on the live session,
because `fit` has no such event.
"""

from __future__ import annotations

from typing import NamedTuple

from trace_events import RECORDED

SAME, DIFFERENT, NO_MEANING = "same in fit", "different", "has no meaning in fit"

_ESTIMATOR = (
    "an Estimator drives sessions of its own; `hookbridge.estimator` keeps that loop"
)
MEANINGLESS: dict[str, str] = {
    **{name: _ESTIMATOR for name in RECORDED if name.startswith("estimator_")},
    "worker_non_chief": (
        "`fit` has no session of a worker on somebody else's server; the session "
        "loops of `hookbridge.loops` do"
    ),
}


class Difference(NamedTuple):
    """Why events in `fit` are not the recorded ones.

    Attributes:
      because: the reason.
      where: `"fit"` or `"session"`: where the scenario runs in our tests.
    """

    because: str
    where: str = "fit"


_NOT_LOST = (
    "the weights and the global step of a model in this process are not lost with a "
    "session: after the recovery training goes on from them"
)
_NOT_RESTORED = (
    f"{_NOT_LOST}, not from the last checkpoint (a live session that TensorFlow's "
    "session manager restores gives the recorded events)"
)
_TAKEN_FOR_DATA = (
    "Keras would take the error for the end of the data: it escapes as "
    "`LiveSessionError` with the hook's own as `hook_error`"
)
_LAST_STEP = (
    "outside of a step, a tensor of the step has the value of the last step: there is "
    "no batch to compute it from (a live session gives the recorded events for ops "
    "that hooks make)"
)
DIFFERENCES: dict[str, Difference] = {
    **{
        f"{error}_in_{event}": Difference(_TAKEN_FOR_DATA)
        for event in ("begin", "after_create_session")
        for error in ("outofrange", "stopiteration")
    },
    "recover_aborted_in_after_run_ckpt": Difference(_NOT_RESTORED),
    "recover_unavailable_in_before_run_nockpt": Difference(_NOT_LOST),
    "recover_unavailable_in_after_run_nockpt": Difference(_NOT_LOST),
    "recover_stop_flag_lost": Difference(_NOT_LOST),
    "recover_coord_thread_aborted": Difference(_NOT_LOST, "session"),
    "no_global_step": Difference("a Keras model always has a global step", "session"),
    "options_debug_watch_merge": Difference(
        "watches on tensors need a session on a real graph: refused with "
        "`LiveSessionError`"
    ),
    "logging_hook_triggers": Difference(_LAST_STEP),
    "final_ops": Difference(
        "`loss:0` is first looked up in `end`, when no step keeps it any more: refused "
        "with `LiveSessionError` (a live session gives the recorded events for ops "
        "that hooks make)"
    ),
}

_LOOP = "Keras owns the loop: no user code calls `session.run`"
_STEP_FN = "`fit` has no `run_step_fn`"
_USER_RUN = "`fit` takes no fetches, feeds or options from the user"
SESSION_ONLY: dict[str, str] = {
    "normal_close_without_with": "`fit` closes the session itself",
    "out_of_range_no_with": "`fit` closes the session itself",
    "zero_runs": "hooks begin with the first batch; without one there is nothing to do",
    "user_result": _USER_RUN,
    "feeds_merge": _USER_RUN,
    "feeds_hook_and_user_same_tensor": _USER_RUN,
    "feeds_user_dict_not_mutated": _USER_RUN,
    "options_merge": _USER_RUN,
    "default_hooks_order": "`fit` adds no hooks of its own",
    "stop_at_step_last_step_increment_2": "a batch adds 1 to the global step",
    "run_after_stop": _LOOP,
    "should_stop_and_run_after_close": _LOOP,
    "coord_thread_raises": _LOOP,
    "out_of_range_raised_by_user": _LOOP,
    "stop_iteration_raised_by_user": _LOOP,
    "out_of_range_subclass_raised_by_user": _LOOP,
    "exception_in_user_code": _LOOP,
    "keyboard_interrupt_in_user_code": _LOOP,
    "recover_aborted_in_user_code": _LOOP,
    "recover_aborted_in_before_run_singular": "`fit` recovers",
    "recover_in_step_fn": _STEP_FN,
    **{name: _STEP_FN for name in RECORDED if name.startswith("run_step_fn")},
    "final_ops_outofrange": "the data are Keras's, not a tensor of the graph",
    "nested_monitored_sessions": (
        "the inner session is one on a live graph of its own, which only tests have"
    ),
}


def verdict(name: str) -> str:
    """The class of a scenario."""
    if name in MEANINGLESS:
        return NO_MEANING
    return DIFFERENT if name in DIFFERENCES else SAME


def with_verdict(wanted: str) -> list[str]:
    """The scenarios of a class, in the order of the recording."""
    return [name for name in RECORDED if verdict(name) == wanted]


def same_in_fit() -> list[str]:
    """The scenarios that run in `fit` and give the recorded events."""
    return [name for name in with_verdict(SAME) if name not in SESSION_ONLY]


def same_in_session() -> list[str]:
    """The scenarios that give the recorded events on a live session.

    A scenario that differs in `fit` may be one of them.
    """
    differing = {name for name, d in DIFFERENCES.items() if d.where == "session"}
    differing.add("options_debug_watch_merge")  # refused in both
    lost = {n for n, d in DIFFERENCES.items() if d.because == _NOT_LOST}
    return [n for n in RECORDED if n not in {*MEANINGLESS, *differing, *lost}]
