"""What a recorded step costs beside a plain one, in a session and in `fit`.

    python -m benchmarks.reference_runs --clock=cpu

Each step is recorded: its batch, loss and rate, and the norms of gradients and
variables. The network is small, so the microseconds of a recorder show.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import hookbridge as hb
from benchmarks import base
from benchmarks.fit_cases import fit_case, keras_model
from benchmarks.overhead_cases import Work, session_case

LOOPS = ("MonitoredTrainingSession", "Model.fit")


def recorded_fit(name: str, work: Work, folder: Path) -> base.Case:
    """`fit` with a new recorder in each repeat."""
    model = keras_model(work)

    def run() -> base.Sample:
        number = len(list(folder.iterdir()))
        recorder = hb.recorder(folder / f"fit{number}", steps=2 * work.steps)
        return fit_case(name, work, hb.as_callbacks([recorder]), model).run()

    return base.Case(name, run)


def main(arguments: Sequence[str] | None = None) -> None:
    options = base.parse(__doc__ or "", arguments, steps=100)
    work = Work(options.steps)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        every = (options.repeats + 1) * work.steps
        recorder = hb.recorder(folder / "session", steps=every)
        sessions = [
            session_case(f"{LOOPS[0]}, plain", work, []),
            session_case(f"{LOOPS[0]}, recorded", work, [recorder]),
        ]
        timings = base.measure_open(sessions, repeats=options.repeats)
        cases = [
            fit_case(f"{LOOPS[1]}, plain", work, []),
            recorded_fit(f"{LOOPS[1]}, recorded", work, folder),
        ]
        timings |= base.measure(cases, repeats=options.repeats)
    base.print_facts(options)
    pairs = [(loop, f"{loop}, plain", f"{loop}, recorded") for loop in LOOPS]
    rows = base.ratio_rows(timings, pairs)
    print(base.markdown(rows, ["microseconds a step", "plain", "recorded", "ratio"]))
    base.write_json(options, timings=timings)


if __name__ == "__main__":
    base.one_thread_per_op()
    main()
