"""What hooks and callbacks are told under `ParameterServerStrategy`, and when."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from cluster_processes import WITH_CHIEF, Job, job
from fork_server import ForkServer
from hook_loops import read_scalars
from ps_guests import BATCHES, EPOCHS, Recorder, batches, guests, model, square_output

import hookbridge as hb

pytestmark = pytest.mark.slow

v1 = tf.compat.v1
RATE = 0.125


@pytest.fixture(scope="module")
def events(
    tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer
) -> Iterator[Job]:
    """The job `events_job.py` after all its fits."""
    with job(
        tmp_path_factory.mktemp("events"),
        "events_job.py",
        server=fork_server,
        tasks=WITH_CHIEF,
    ) as it:
        codes = it.wait()
        assert set(codes.values()) == {0}, it.logs()
        yield it


def story(log: list[list[Any]]) -> list[tuple[Any, ...]]:
    """The events of all guests in order, without their facts."""
    return [tuple(event[:3]) for event in log]


@pytest.fixture(scope="module")
def native() -> list[list[Any]]:
    """The same guests in a `fit` of one process."""
    log = Recorder()
    model(square_output, 0.0, metrics=["mae"]).fit(
        batches(),
        epochs=EPOCHS,
        steps_per_epoch=BATCHES,
        verbose=0,
        callbacks=hb.as_callbacks(guests(log)),
    )
    return log.events


@pytest.mark.parametrize("lag", ["None", "0"])
def test_every_guest_is_told_the_story_of_a_fit_in_one_process(
    events: Job, native: list[list[Any]], lag: str
) -> None:
    noted = events.of_chief(f"events {lag}")
    told = noted["log"]
    assert story(told) == story(native)
    for ours, theirs in zip(told, native, strict=True):
        if ours[0] in ("first", "second"):
            assert ours[3] == theirs[3]  # the keys and types of logs
    assert sorted(noted["history"]) == ["loss", "mae"]
    assert all(len(values) == EPOCHS for values in noted["history"].values())
    # Fetched values are those of their step.
    after = [(step, facts) for _, event, step, facts in told if event == "after_run"]
    assert len(after) == 2 * EPOCHS * BATCHES
    for step, facts in after:
        assert facts["loss"] == pytest.approx(facts["expected"], rel=1e-5)
        assert facts["shape"] == [5, 4]
        assert facts["step"] == step - 1
    # Batches differ, and so do their losses.
    assert len({facts["loss"] for _, facts in after}) > BATCHES // 2


def test_validation_batches_come_before_their_end(events: Job) -> None:
    validation = events.of_chief("validation")
    first = [event[1:] for event in story(validation["log"]) if event[0] == "first"]
    first = first[: first.index(("on_epoch_end", 0)) + 1]
    ends = ("on_test_batch_end", "on_test_end")
    test = [event for event in first if event[0] in ends]
    assert test == [
        *(("on_test_batch_end", b) for b in range(3)),
        ("on_test_end", None),
    ]
    assert first.index(test[-1]) < first.index(("on_epoch_end", 0))
    assert first.index(("on_train_batch_end", BATCHES - 1)) < first.index(test[0])
    # The step is not traced again after it.
    assert validation["traces"] == validation["traces"][:1] * EPOCHS


@pytest.mark.one_tensorflow
def test_data_that_end_in_the_middle_end_the_fit(events: Job) -> None:
    ended = events.of_chief("ended")
    assert ended["error"] in ("", "OutOfRangeError")  # as in a `fit` without guests
    delivered = [e for e in ended["log"] if e[:2] == ["first", "on_train_batch_end"]]
    assert 9 <= len(delivered) <= 18  # each worker has 9 batches
    path = tf.train.latest_checkpoint(str(events.folder / "ended"))
    step = tf.train.load_checkpoint(path).get_tensor("global_step")
    assert path.endswith(f"-{step}")
    if not ended["error"]:
        assert step == len(delivered)
    # An epoch whose steps were not delivered has no end.
    first = [e[1] for e in ended["log"] if e[0] == "first"]
    assert first.count("on_epoch_end") <= len(delivered) // 4 + 1
    for before, event in itertools.pairwise(first):
        assert (before, event) != ("on_epoch_begin", "on_epoch_end")


@pytest.mark.one_tensorflow
def test_several_steps_inner_fits_and_stops(
    subtests: pytest.Subtests, events: Job
) -> None:
    told = events.of_chief("several steps")["log"]
    steps = [
        number for name, e, number, _ in told if (name, e) == ("hook", "after_run")
    ]
    assert steps == [3, 6]
    ends = [n for name, e, n, _ in told if (name, e) == ("first", "on_train_batch_end")]
    assert ends == [2, 5]
    # A fit of a callback makes steps of its own.
    inner = events.of_chief("inner fit")
    assert inner["ran"] == EPOCHS * BATCHES
    assert inner["bias"] == pytest.approx(-RATE * (EPOCHS * BATCHES + 3))
    for lag in (0, 4):  # a stop takes effect within `max_lag`
        with subtests.test(str(lag)):
            assert 3 <= events.of_chief(f"stop {lag}")["ran"] <= 3 + lag


def test_learning_rate_reaches_the_servers(events: Job) -> None:
    # Each step subtracts the rate from the bias.
    fed = events.of_chief("fed rate")
    rates = [0.5, 0.5, 0.25, 0.25, 0.0, 0.125]
    assert fed["seen"] == pytest.approx(rates * EPOCHS)
    assert fed["bias"] == pytest.approx(-sum(rates) * EPOCHS)


@pytest.mark.one_tensorflow
def test_a_rate_that_the_step_does_not_read_is_refused(
    subtests: pytest.Subtests, events: Job
) -> None:
    refused = r"the step does not read one.* reads: `second/learning_rate:0`"
    for name, feed, said in (
        ("learning_rate:0", None, refused),
        ("learning_rate:0", 0.0, refused),
        ("second/learning_rate:0", 0.0, "Only the rate of `model.optimizer`"),
    ):
        with subtests.test(f"{name} {feed}"):
            noted = events.of_chief(f"rate {name} {feed}")
            assert re.search(said, noted["error"])
            assert (noted["seen"], noted["bias"]) == ([], 0.0)  # no step was made
    read = events.of_chief("rate second/learning_rate:0 None")
    assert read["seen"] == [0.5] * EPOCHS * BATCHES
    assert read["bias"] == pytest.approx(-0.5 * EPOCHS * BATCHES)


@pytest.mark.one_tensorflow
def test_a_schedule_knows_the_step_that_it_is_called_for(events: Job) -> None:
    """Each update has the rate of its own step, though no step is waited for."""
    last = EPOCHS * BATCHES
    for several in (1, 3):
        noted = events.of_chief(f"schedule {several}")
        assert noted["asked"] == list(range(0, last, several))
        assert noted["bias"] == pytest.approx(-0.5 * 3 - 0.25 * (last - 3))


def test_an_error_of_a_hook_passes_unchanged_and_leaves_nothing(events: Job) -> None:
    noted = events.of_chief("errors")
    assert noted["unchanged"]
    assert noted["ran_after"] == EPOCHS * BATCHES
    assert {name.split("-")[0] for name in noted["threads"]} <= {"EventLoggerThread"}


def test_what_cannot_be_carried_is_refused_by_name(events: Job) -> None:
    _, division, profiler, unknown, options, evaluate = events.of_chief("errors")[
        "raised"
    ]
    assert division[0] == "ZeroDivisionError"
    assert profiler[0] == "RefusedError"
    assert "`ProfilerHook` cannot run under `ParameterServerStrategy`" in profiler[1]
    assert "no_such_tensor" in unknown[1] and "Nearest names" in unknown[1]
    assert options[0] == "LiveSessionError" and "RunOptions" in options[1]
    assert evaluate[0] == "RefusedError" and "evaluate" in evaluate[1]


@pytest.mark.one_tensorflow
def test_stock_callbacks_that_plain_keras_refuses(events: Job) -> None:
    noted = events.of_chief("stock callbacks")
    assert "Batch-level" in noted["plain"] and "ParameterServer" in noted["plain"]
    # The loss falls, so `EarlyStopping(mode="max")` ends the fit.
    assert noted["epochs"] == 2 and noted["batches"] == 2 * BATCHES
    assert noted["bias"] == pytest.approx(-BATCHES * RATE * (1 + 0.5))
    names = {path.name for path in events.folder.glob("stock*")}
    assert names >= {"stock.csv", "stock-03.h5", "stock-06.h5"}
    assert len((events.folder / "stock.csv").read_text().splitlines()) == 3
    assert list((events.folder / "board" / "train").glob("events*"))


def test_keras_3_is_refused_with_the_way_out(events: Job) -> None:
    message = events.of_chief("keras 3")["message"]
    if tf.__version__.startswith("2.15"):
        assert message == ""  # its `tf.keras` has this strategy
    else:
        assert "Keras 3" in message and "tf_keras" in message


def checkpoints(folder: Path) -> list[str]:
    """All checkpoints of a folder, by step."""
    found = [str(p.with_suffix("")) for p in folder.glob("model.ckpt-*.index")]
    return sorted(found, key=lambda path: int(path.rpartition("-")[2]))


def test_checkpoints_hold_as_many_steps_as_their_global_step(
    subtests: pytest.Subtests, events: Job
) -> None:
    for folder in ("saved", "timed"):
        with subtests.test(str(folder)):
            found = checkpoints(events.folder / folder)
            assert len(found) > 1
            for path in found:
                reader = tf.train.load_checkpoint(path)
                step = int(reader.get_tensor("global_step"))
                # One by time has the steps in flight too; its name does not count them.
                assert folder == "timed" or path.endswith(f"-{step}")
                # Every step subtracts the rate from the bias and counts itself on the
                # server.
                assert reader.get_tensor("out/bias")[0] == pytest.approx(-RATE * step)
                assert int(reader.get_tensor("SGD/iteration")) == step
    paths = checkpoints(events.folder / "saved")
    *steps, last = (int(path.rpartition("-")[2]) for path in paths)
    assert steps == [0, 4, 8]
    assert 10 <= last <= 13  # `StopAtStepHook` at 10, `max_lag` of 3
    assert events.of_chief("native hooks")["twice"] == 2 * last
    # A v1 saver restores them.
    with tf.Graph().as_default(), v1.Session() as session:
        bias = v1.get_variable("out/bias", [1], use_resource=True)
        kernel = v1.get_variable("hidden/kernel", [3, 4], use_resource=True)
        count = v1.train.get_or_create_global_step()
        v1.train.Saver().restore(session, paths[1])
        values = session.run([bias, kernel, count])
    assert values[0] == pytest.approx([-RATE * 4])
    assert np.isfinite(values[1]).all()
    assert values[2] == 4


def test_logs_and_summaries_are_of_the_steps_that_hooks_chose(events: Job) -> None:
    logged = events.of_chief("native hooks")["logged"]
    assert len(logged) == 3  # steps 0, 4 and 8, as in one process
    assert all(line["learning_rate:0"] == pytest.approx(RATE) for line in logged)
    assert len({line["loss:0"] for line in logged}) == 3
    tags: dict[str, list[int]] = {}
    for folder in ("summaries", "rate"):
        for step, tag, _ in read_scalars(events.folder / folder):
            tags.setdefault(tag, []).append(step)
    starts = [[1, 2, 4, 6, 8], [1, 3, 5, 7]]
    assert any(tags["bridged_loss"][: len(each)] == each for each in starts)
    assert tags["global_step/sec"]
