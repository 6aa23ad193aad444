"""Tests whose jobs run beside each other: most of their time is waiting."""

from __future__ import annotations

import concurrent.futures
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import pytest
from fork_server import ForkServer

AT_A_TIME = 3
Body = Callable[..., None]
Results = dict[Body, concurrent.futures.Future[None]]


@pytest.fixture(scope="module")
def results(
    tmp_path_factory: pytest.TempPathFactory,
    fork_server: ForkServer,
    request: pytest.FixtureRequest,
) -> Iterator[Results]:
    """The results of the bodies of the file's tests that were asked for."""
    bodies = [
        cast(Body, item.callspec.params["body"])
        for item in request.session.items
        if item.path == request.path
        and isinstance(item, pytest.Function)
        and "results" in item.fixturenames
    ]
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        try:
            yield {
                body: pool.submit(body, tmp_path_factory.mktemp("job"), fork_server)
                for body in bodies
            }
        finally:
            pool.shutdown(cancel_futures=True)


def beside_others(*cases: Any, exhaustive: Sequence[Any] = ()) -> Callable[[Body], Any]:
    """Makes a slow test of `body(tmp_path, fork_server)`, or one for each case.

    With cases, it is `body(case, tmp_path, fork_server)`. TF 2.15.1 runs the first one.

    Args:
      cases: the cases that `make test` runs.
      exhaustive: further cases, which only `make test-all` runs.
    """

    def marks_of(number: int) -> list[Any]:
        newest_only = [pytest.mark.one_tensorflow] if number else []
        return [*newest_only, *[pytest.mark.exhaustive] * (number >= len(cases))]

    def make(body: Body) -> Any:
        params = [
            pytest.param(
                functools.partial(body, case),
                id=str(case),
                marks=marks_of(number),
            )
            for number, case in enumerate((*cases, *exhaustive))
        ]

        @pytest.mark.slow
        @pytest.mark.parametrize("body", params or [pytest.param(body, id="job")])
        def test(body: Body, results: Results) -> None:
            results[body].result()

        return test

    return make
