"""What ends a session ends its job; an error that a stop has caused is none."""

from __future__ import annotations

import math
import threading

import pytest
import tensorflow as tf

from hookbridge import errors
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.jobs.loops.group_stop import step_watch
from hookbridge.jobs.loops.group_stop.around_session import (
    end_with,
    stop_is_no_error,
    stop_of_all,
)
from hookbridge.jobs.loops.group_stop.member import GroupStop, GroupStopped
from hookbridge.jobs.loops.group_stop.step_watch import StepWatch


def lost_call() -> tf.errors.OpError:
    return tf.errors.UnavailableError(None, None, "the other task is gone")


@pytest.fixture
def group() -> GroupStop:
    """A process without servers, so its stop reaches itself only."""
    return GroupStop(ClusterConfig({"chief": ("localhost:1",)}, "chief", 0))


@pytest.mark.parametrize(
    ("error", "reason", "code"),
    [
        (StopIteration(), "its data ended", 0),
        (tf.errors.OutOfRangeError(None, None, ""), "its data ended", 0),
        (ValueError("bad"), "ValueError: bad", 1),
        (lost_call(), "UnavailableError: the other task is gone", 138),
        (SystemExit(7), "SystemExit: 7", 7),
    ],
    ids=repr,
)
def test_an_error_stops_the_job(
    group: GroupStop, error: BaseException, reason: str, code: int
) -> None:
    with pytest.raises(type(error)) as caught, stop_of_all(group):
        raise error
    assert caught.value is error
    assert (group.reason, group.code) == (f"chief 0: {reason}", code)
    assert group.failed == isinstance(error, tf.errors.UnavailableError)


def test_a_stop_and_an_interrupted_step_are_passed_on(group: GroupStop) -> None:
    with pytest.raises(GroupStopped), stop_of_all(group):
        raise GroupStopped("of another")
    assert not group.stopped
    group.watch.is_interrupted = True
    with pytest.raises(GroupStopped), stop_of_all(group):
        raise lost_call()
    assert not group.stopped


def test_a_failed_call_after_a_stop_is_no_error(group: GroupStop) -> None:
    with pytest.raises(tf.errors.UnavailableError), stop_is_no_error(group):
        raise lost_call()
    with stop_is_no_error(group):
        raise GroupStopped
    group.stop_here("its hook asked")
    with stop_is_no_error(group):
        raise lost_call()
    with pytest.raises(ValueError, match="bad"), stop_is_no_error(group):
        raise ValueError("bad")
    group.failed = True
    with pytest.raises(tf.errors.UnavailableError), stop_is_no_error(group):
        raise lost_call()


def test_the_lost_task_is_the_error_that_counts(group: GroupStop) -> None:
    lost = errors.TaskLostError("it is gone")
    group.fail(lost)
    for error in (None, GroupStopped(), lost_call(), ValueError()):
        with pytest.raises(errors.TaskLostError) as caught, stop_is_no_error(group):
            if error is not None:
                raise error
        assert caught.value is lost


def test_only_a_code_ends_the_process(capsys: pytest.CaptureFixture[str]) -> None:
    end_with(0, "its data ended")
    with pytest.raises(SystemExit) as caught:
        end_with(143, "it received SIGTERM")
    assert caught.value.code == 143
    assert capsys.readouterr().err == "hookbridge: exit code 143: it received SIGTERM\n"


def test_a_stop_interrupts_the_step_in_which_it_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(step_watch, "INTERRUPT_SECS", 0.0)
    log: list[str] = []
    watch, over = StepWatch(), threading.Event()
    watch.release_by(lambda: log.append("one more token"))
    watch.wake(over)  # between two steps
    watch.step_begins()
    watch.wake(over)  # in a step that nothing may end
    assert (log, watch.is_interrupted) == (["one more token"] * 2, False)
    watch.interrupt_by(lambda: log.append("interrupted"))
    watch.wake(over)
    assert (log[2:], watch.is_interrupted) == (["one more token", "interrupted"], True)


def test_a_step_that_began_after_the_stop_is_not_interrupted() -> None:
    watch = StepWatch()

    class NextStep(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            watch.step_begins()
            return self.is_set()

    over = NextStep()
    watch.interrupt_by(lambda: pytest.fail("interrupted"))
    watch.step_begins()
    watch.wake(over)
    over.set()
    watch.wake(over)
    assert not watch.is_interrupted


def test_only_a_long_step_is_stalled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_watch, "STALL_SECS", math.inf)
    watch = StepWatch()
    assert not watch.is_stalled()
    watch.step_begins()
    assert not watch.is_stalled()
    monkeypatch.setattr(step_watch, "STALL_SECS", -1.0)
    assert watch.is_stalled()
    watch.step_is_over()
    assert not watch.is_stalled()
