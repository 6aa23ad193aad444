"""Chooses the tests of a tier, `--fast`, `make test` or `--all`, on each TensorFlow."""

from __future__ import annotations

import datetime
import os
import zlib
from pathlib import Path
from typing import Any

import pytest

from hookbridge.ground.compat import LAST_WITH_KERAS2, installed_tf_version

ROOT = Path(__file__).resolve().parents[2]
# The number of the day on which the run began: its workers choose the same tests.
RUN_DAY = "HOOKBRIDGE_TEST_DAY"
# With `--of-today`, all tests have run after so many days.
DAYS_FOR_ALL = 7
# The Keras flavours of this environment, none of which is imported yet. TF 2.15 has one
# (`keras` 2.15); later TF has `keras` 3 and, beside it, tf_keras.
FLAVOURS = ["keras"]
if installed_tf_version() > LAST_WITH_KERAS2:
    FLAVOURS.append("tf_keras")
# What stands on private names of TensorFlow and on the flavours of Keras: `make test`
# runs it on TF 2.15 too.
ON_TF215 = (
    "adapters/fit_loop/",
    "adapters/guests/",
    "adapters/live_model/",
    "adapters/live_session/",
    "adapters/multi_worker/",
    "adapters/parameter_server/",
    "adapters/session_graph/",
    "adapters/session_loop/",
    "adapters/session_state/test_backups.py",
    "adapters/session_state/test_moment_table.py",
    "adapters/session_state/test_one_moment",
    "adapters/state/test_callback_state.py",
    "differential/",
    "estimator/",
    "traces/",
    "v1_mode/",
    "test_conformance.py",
    "test_private_attributes.py",
    "test_private_frames.py",
    "test_private_names.py",
    "test_patching.py",
)
# Of these `make test` runs every case on TF 2.15, of others the first one of a test.
WHOLE_ON_TF215 = (
    "adapters/session_loop/test_fit_scenarios.py",
    "adapters/session_state/test_moment_table.py",
    "differential/",
    "traces/",
    "test_conformance.py",
    "test_private_attributes.py",
    "test_private_frames.py",
    "test_private_names.py",
)
# What starts processes.
FORKING_FIXTURES = frozenset({"bare_launcher", "fork_server", "launcher"})


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs tests for another pytest, that of `-n`."""
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    """Gives the run its day, which its workers inherit."""
    if not is_worker(config):
        os.environ[RUN_DAY] = str(datetime.date.today().toordinal())


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--fast` for `make test-fast`, and `--all` for `make test-all`."""
    parser.addoption(
        "--fast",
        action="store_true",
        help="leave out tests marked slow, processes, and all cases but the first",
    )
    parser.addoption(
        "--all",
        action="store_true",
        help="add tests marked exhaustive, and on TF 2.15 those of all folders",
    )
    parser.addoption(
        "--of-today",
        action="store_true",
        help="do as --all does for a seventh of the files, another one every day",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """On TF 2.15, does not import a file that has no test for it."""
    is_whole = config.getoption("--all") or config.getoption("--of-today")
    is_test = collection_path.name.startswith("test_")
    if is_whole or not is_test or len(FLAVOURS) > 1 or _is_in(collection_path):
        return None
    return "both_tensorflows" not in collection_path.read_text("utf-8") or None


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leaves out what the tier does not run.

    On TF 2.15, `--all` is needed for folders not in `ON_TF215`, unless a test is marked
    `both_tensorflows`, and for other cases of a test than its first one. Tests marked
    `exhaustive` need `--all` everywhere. `--fast` leaves out tests marked `slow`, those
    that fork processes, and other cases of a test than its first one.

    A file with `ONE_KERAS = True`, where it plays no part which Keras a guest is of,
    runs with the first one only. One with `ONE_TENSORFLOW = True`, where TensorFlow
    plays no part, runs beside TensorFlow 2.16 and later only. So does a test or a case
    marked `one_tensorflow`: another one of its kind runs on TF 2.15 too.

    A case with tf_keras that TF 2.15 runs with its own Keras 2 needs `--all` elsewhere.
    """
    is_fast = config.getoption("--fast")
    firsts: dict[str, str] = {}
    firsts_on_tf215: dict[str, str] = {}

    def is_first_of(first: dict[str, str], item: pytest.Item) -> bool:
        test = item.nodeid.partition("[")[0]
        return first.setdefault(test, item.nodeid) == item.nodeid

    def is_on_tf215(item: pytest.Item) -> bool:
        """Whether TF 2.15 runs the case without `--all`, with its Keras 2."""
        if _is_of_one_tensorflow(item) or not _is_for_tf215(item):
            return False
        return is_first_of(firsts_on_tf215, item) or not _is_sampled(item)

    def is_left_out(item: pytest.Item) -> bool:
        is_all = config.getoption("--all") or (
            config.getoption("--of-today") and _is_of_today(item)
        )
        if not is_all and item.get_closest_marker("exhaustive") is not None:
            return True
        if len(FLAVOURS) == 1:
            return _is_of_one_tensorflow(item) or not (is_all or is_on_tf215(item))
        case = getattr(item, "callspec", None)
        params = {} if case is None else case.params
        if params.get("keras") == "tf_keras" and not is_all and is_on_tf215(item):
            return True
        has_other_keras = FLAVOURS[1] in map(str, params.values())
        if has_other_keras and (is_fast or of_module(item, "ONE_KERAS")):
            return True
        return is_fast and (_is_slow(item) or not is_first_of(firsts, item))

    left_out = {item for item in items if is_left_out(item)}
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))


def _is_slow(item: pytest.Item) -> bool:
    """Whether the test is marked so, or starts processes by one of the fixtures."""
    fixtures = getattr(item, "fixturenames", ())
    marked = item.get_closest_marker("slow") is not None
    return marked or not FORKING_FIXTURES.isdisjoint(fixtures)


def _is_of_today(item: pytest.Item) -> bool:
    """Whether today is the day of the week on which the whole file runs."""
    file = item.path.relative_to(ROOT).as_posix()
    return (zlib.crc32(file.encode()) - int(os.environ[RUN_DAY])) % DAYS_FOR_ALL == 0


def _is_of_one_tensorflow(item: pytest.Item) -> bool:
    """Whether TensorFlow plays no part, or another case shows the same on TF 2.15."""
    marked = item.get_closest_marker("one_tensorflow") is not None
    return marked or of_module(item, "ONE_TENSORFLOW")


def _is_for_tf215(item: pytest.Item) -> bool:
    """Whether the test stands on what differs between TF 2.15 and later ones."""
    if item.get_closest_marker("both_tensorflows") is not None:
        return True
    return _is_in(item.path)


def _is_in(file: Path, places: tuple[str, ...] = ON_TF215) -> bool:
    """Whether a file of tests is one of these, or in one of these folders."""
    return file.relative_to(ROOT / "tests").as_posix().startswith(places)


def _is_sampled(item: pytest.Item) -> bool:
    """Whether TF 2.15 runs the first case of the test only."""
    marked = item.get_closest_marker("both_tensorflows") is not None
    return not marked and not _is_in(item.path, WHOLE_ON_TF215)


def of_module(item: pytest.Item, name: str) -> Any:
    """What the test's file says by a name; False if it does not."""
    return getattr(getattr(item, "module", None), name, False)
