"""What hooks and callbacks are told under `ParameterServerStrategy`, and when."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from cluster_processes import WITH_CHIEF, Job, job
from fork_server import ForkServer
from ps_guests import BATCHES, EPOCHS, Recorder, batches, guests, model, square_output

import hookbridge as hb

pytestmark = pytest.mark.slow

v1 = tf.compat.v1
LAGS = ["None", "2", "0"]
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


@pytest.mark.parametrize("lag", LAGS)
def test_every_guest_is_told_the_story_of_a_fit_in_one_process(
    events: Job, native: list[list[Any]], lag: str
) -> None:
    told = events.of_chief(f"events {lag}")["log"]
    assert story(told) == story(native)
    for ours, theirs in zip(told, native, strict=True):
        if ours[0] in ("first", "second"):
            assert ours[3] == theirs[3]  # the keys and types of logs


@pytest.mark.parametrize("lag", LAGS)
def test_fetched_values_are_those_of_their_step(events: Job, lag: str) -> None:
    noted = events.of_chief(f"events {lag}")["log"]
    after = [(number, facts) for _, event, number, facts in noted if facts]
    after = [(number, facts) for number, facts in after if "expected" in facts]
    assert len(after) == 2 * EPOCHS * BATCHES
    for number, facts in after:
        assert facts["loss"] == pytest.approx(facts["expected"], rel=1e-5)
        assert facts["shape"] == [5, 4]
        assert facts["step"] == number - 1
    # Batches differ, and so do their losses.
    assert len({facts["loss"] for _, facts in after}) > BATCHES // 2


def test_epoch_logs_are_those_of_keras(events: Job) -> None:
    for lag in LAGS:
        history = events.of_chief(f"events {lag}")["history"]
        assert sorted(history) == ["loss", "mae"]
        assert all(len(values) == EPOCHS for values in history.values())


def test_validation_batches_come_before_their_end(events: Job) -> None:
    told = story(events.of_chief("validation")["log"])
    first = [event[1:] for event in told if event[0] == "first"]
    first = first[: first.index(("on_epoch_end", 0)) + 1]
    test = [e for e in first if e[0].startswith("on_test")]
    assert test == [
        *(("on_test_batch_end", b) for b in range(3)),
        ("on_test_end", None),
    ]
    assert first.index(test[-1]) < first.index(("on_epoch_end", 0))
    assert first.index(("on_train_batch_end", BATCHES - 1)) < first.index(test[0])


def test_the_step_is_not_traced_again_after_a_validation(events: Job) -> None:
    first, *later = events.of_chief("validation")["traces"]
    assert later == [first] * (EPOCHS - 1)


@pytest.mark.parametrize("number", range(2))
def test_data_that_end_in_the_middle_end_the_fit(events: Job, number: int) -> None:
    ended = events.of_chief(f"ended {number}")
    assert ended["error"] in ("", "OutOfRangeError")  # as in a `fit` without guests
    delivered = [e for e in ended["log"] if e[:2] == ["first", "on_train_batch_end"]]
    assert 9 <= len(delivered) <= 18  # each worker has 9 batches
    path = tf.train.latest_checkpoint(str(events.folder / f"ended {number}"))
    step = tf.train.load_checkpoint(path).get_tensor("global_step")
    assert path.endswith(f"-{step}")
    if not ended["error"]:
        assert step == len(delivered)
    # An epoch whose steps were not delivered has no end.
    first = [e[1] for e in ended["log"] if e[0] == "first"]
    assert first.count("on_epoch_end") <= len(delivered) // 4 + 1
    for before, event in itertools.pairwise(first):
        assert (before, event) != ("on_epoch_begin", "on_epoch_end")


def test_several_steps_in_one_execution(events: Job) -> None:
    told = events.of_chief("several steps")["log"]
    steps = [
        number for name, e, number, _ in told if (name, e) == ("hook", "after_run")
    ]
    assert steps == [3, 6]
    ends = [n for name, e, n, _ in told if (name, e) == ("first", "on_train_batch_end")]
    assert ends == [2, 5]


def test_a_fit_of_a_callback_makes_steps_of_its_own(events: Job) -> None:
    inner = events.of_chief("inner fit")
    assert inner["ran"] == EPOCHS * BATCHES
    assert inner["bias"] == pytest.approx(-RATE * (EPOCHS * BATCHES + 3))


@pytest.mark.parametrize("lag", [0, 4])
def test_stop_takes_effect_within_max_lag(events: Job, lag: int) -> None:
    ran = events.of_chief(f"stop {lag}")["ran"]
    assert 3 <= ran <= 3 + lag


def test_learning_rate_reaches_the_servers(events: Job) -> None:
    # Each step subtracts the rate from the bias.
    set_to = events.of_chief("set rate")
    assert set_to["bias"] == pytest.approx(-BATCHES * (0.5 + 0.25))
    fed = events.of_chief("fed rate")
    rates = [0.5, 0.5, 0.25, 0.25, 0.0, 0.125]
    assert fed["seen"] == pytest.approx(rates * EPOCHS)
    assert fed["bias"] == pytest.approx(-sum(rates) * EPOCHS)


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


@pytest.mark.parametrize("folder", ["saved", "timed"])
def test_checkpoints_hold_as_many_steps_as_their_global_step(
    events: Job, folder: str
) -> None:
    found = checkpoints(events.folder / folder)
    assert len(found) > 1
    for path in found:
        reader = tf.train.load_checkpoint(path)
        step = int(reader.get_tensor("global_step"))
        # Every step subtracts the rate from the bias and counts itself on the server.
        assert reader.get_tensor("out/bias")[0] == pytest.approx(-RATE * step)
        assert int(reader.get_tensor("SGD/iteration")) == step


def test_checkpoints_by_steps_come_at_their_steps(events: Job) -> None:
    steps = [int(p.rpartition("-")[2]) for p in checkpoints(events.folder / "saved")]
    last = steps.pop()
    assert steps == [0, 4, 8]
    assert 10 <= last <= 13  # `StopAtStepHook` at 10, `max_lag` of 3
    for path in checkpoints(events.folder / "saved"):
        step = tf.train.load_checkpoint(path).get_tensor("global_step")
        assert path.endswith(f"-{step}")


def test_a_v1_saver_restores_them(events: Job) -> None:
    path = checkpoints(events.folder / "saved")[1]
    with tf.Graph().as_default(), v1.Session() as session:
        bias = v1.get_variable("out/bias", [1], use_resource=True)
        kernel = v1.get_variable("hidden/kernel", [3, 4], use_resource=True)
        step = v1.train.get_or_create_global_step()
        v1.train.Saver().restore(session, path)
        values = session.run([bias, kernel, step])
    assert values[0] == pytest.approx([-RATE * 4])
    assert np.isfinite(values[1]).all()
    assert values[2] == 4


def test_logging_hook_logs_the_steps_it_chose(events: Job) -> None:
    logged = events.of_chief("native hooks")["logged"]
    assert len(logged) == 3  # steps 0, 4 and 8, as in one process
    assert all(line["learning_rate:0"] == pytest.approx(RATE) for line in logged)
    assert len({line["loss:0"] for line in logged}) == 3


def test_summaries_and_step_rate(events: Job) -> None:
    tags: dict[str, list[int]] = {}
    for folder in ("summaries", "rate"):
        for path in sorted((events.folder / folder).glob("events*")):
            for event in v1.train.summary_iterator(str(path)):
                for value in event.summary.value:
                    tags.setdefault(value.tag, []).append(event.step)
    assert tags["bridged_loss"][:5] == [1, 2, 4, 6, 8] or tags["bridged_loss"][:4] == [
        1,
        3,
        5,
        7,
    ]
    assert tags["global_step/sec"]
