"""What a host delivers to each guest, reported before anything runs.

print(hb.explain([MyHook(), tf.keras.callbacks.EarlyStopping()], host="fit"))
"""

from __future__ import annotations

import textwrap
from typing import Any, Literal, NamedTuple

from hookbridge import errors
from hookbridge.adapters import convert
from hookbridge.adapters.guests import roles, written
from hookbridge.adapters.guests.guest_record import Guest, records
from hookbridge.adapters.parameter_server import ps_refusals
from hookbridge.adapters.parameter_server.deferred_callback import is_batch_level
from hookbridge.adapters.session_loop import v1_tensorboard
from hookbridge.adapters.session_loop.shared import checks
from hookbridge.ground import lifecycle
from hookbridge.ground.arguments import choice

Host = Literal["session", "fit", "parameter_server"]
Verdict = Literal["native", "wrapped", "refused"]

HOSTS: dict[Host, str] = {
    "session": "a session loop (MonitoredTrainingSession, Estimator)",
    "fit": "Model.fit, evaluate and predict",
    "parameter_server": "Model.fit under ParameterServerStrategy",
}
_WIDTH = 88
# Events that wait until a scheduled step has run.
_LATE = ("before_run", "after_run", "on_train_batch_end", "on_batch_end")


class EventReport(NamedTuple):
    """One event that a guest overrides.

    Attributes:
      event: the method.
      when: who calls it in this host, and when.
      counterpart: the event of the host's own lifecycle at that point; None if there
        is none, or if the host is the guest's own loop.
    """

    event: str
    when: str
    counterpart: str | None


class GuestReport(NamedTuple):
    """What a host does with one guest.

    Attributes:
      name: the guest's class.
      kind: `"hook"` or `"callback"`.
      verdict: `"native"` (passes through), `"wrapped"` or `"refused"`.
      reason: why it is refused and what to do instead; empty otherwise.
      events: what is delivered; empty for a refused guest.
      role: which processes of a cluster call it; `hookbridge.set_role` changes that.
      runs_on: those processes in words, for this host.
      cost: what it adds to each step; empty for a refused guest.
      lost: what a restart loses of what the guest wrote, and how it does not.
    """

    name: str
    kind: lifecycle.Kind
    verdict: Verdict
    reason: str
    events: tuple[EventReport, ...]
    role: str
    runs_on: str
    cost: str = ""
    lost: str = ""


class Explanation(NamedTuple):
    """What a host does with each guest of a list; `print` it or read it.

    It prints the verdict and a line for each guest; `details` has all events.

    Attributes:
      host: `"session"`, `"fit"` or `"parameter_server"`.
      guests: one entry for each guest, in order.
    """

    host: Host
    guests: tuple[GuestReport, ...]

    def __str__(self) -> str:
        refused = [guest for guest in self.guests if guest.verdict == "refused"]
        carried = [guest for guest in self.guests if guest.verdict != "refused"]
        if not self.guests:
            return f"{HOSTS[self.host]}: no guests"
        verdict = f"{len(refused)} of {len(self.guests)} guests refused"
        if not refused:
            verdict = f"all guests work ({len(carried)})"
        lines = [f"{HOSTS[self.host]}: {verdict}"]
        for guest in refused:
            lines += [
                f"  {guest.name} ({guest.kind}): refused",
                *_reason(guest, "    "),
            ]
        for guest in carried:
            role = "" if guest.role == "all" else f", role {guest.role!r}"
            lines.append(f"  {guest.name} ({guest.kind}): {guest.verdict}{role}")
            if guest.lost:
                lines += _filled_lines(f"at a restart {guest.lost}", "    ", 4)
        more = "Events and costs: `.details()`, or `hookbridge explain --details`."
        return "\n".join([*lines, more])

    def details(self) -> str:
        """Return the events of each guest, where they come from, its role and cost."""
        lines = [f"Host: {HOSTS[self.host]}"]
        for guest in self.guests:
            lines += ["", f"{guest.name} ({guest.kind}): {guest.verdict}"]
            lines += _filled_lines(
                f"runs on {guest.runs_on} (role {guest.role!r})", "  ", 4
            )
            if guest.cost:
                lines += _filled_lines(f"costs {guest.cost}", "  ", 4)
            if guest.lost:
                lines += _filled_lines(f"at a restart {guest.lost}", "  ", 4)
            lines += _reason(guest, "  ")
            width = max((len(e.event) for e in guest.events), default=0)
            for row in guest.events:
                text = row.when
                if row.counterpart:
                    text += f" (counterpart: `{row.counterpart}`)"
                lines += _filled_lines(text, f"  {row.event:<{width}}  ", width + 4)
        if not self.guests:
            lines.append("No guests.")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain dicts and lists, for `json.dump`."""
        return {
            "host": self.host,
            "guests": [
                {**g._asdict(), "events": [e._asdict() for e in g.events]}
                for g in self.guests
            ],
        }


def explain(items: object, host: Host = "session") -> Explanation:
    """Tell what a host would deliver to each guest, without running anything.

    Args:
      items: one hook or callback, or a list of them, of any Keras flavour.
      host: `"session"`, `"fit"` or `"parameter_server"`.

    Returns:
      A report that prints as text.

    Raises:
      errors.NotAGuestError: an item is neither a hook nor a callback.
      errors.InvalidArgumentError: `host` is not one of those named above.
    """
    choice("host", host, list(HOSTS))
    guests = records(items)
    return Explanation(host, tuple(_explain_one(g, host, guests) for g in guests))


def _explain_one(guest: Guest, host: Host, guests: list[Guest]) -> GuestReport:
    """Report whether a loop refuses a guest, runs it or wraps it, and its events."""
    callbacks = [g.item for g in guests if g.kind == "callback"]
    kind, name = guest.kind, guest.name
    role = guest.role if host == "session" else guest.role_in_fit
    runs_on = _where_it_runs(guest, role, host)
    reason = _refusal(guest, host, guests)
    if reason:
        return GuestReport(name, kind, "refused", reason, (), role, runs_on)
    is_native = (kind == "hook") == (host == "session")
    is_late = host == "parameter_server" and (kind == "hook" or is_batch_level(guest))
    rows = _events(guest, callbacks, is_native, is_late)
    # The host may be a `fit` of Keras 2, which cannot call a Keras 3 callback.
    is_wrapped = is_late or (is_native and guest.is_foreign)
    verdict: Verdict = "native" if is_native and not is_wrapped else "wrapped"
    cost = _cost(kind, host, [row.event for row in rows])
    lost_state = _lost_at_restart(guest)
    return GuestReport(
        name, kind, verdict, "", tuple(rows), role, runs_on, cost, lost_state
    )


def _lost_at_restart(guest: Guest) -> str:
    """Return what a restart loses of what a guest wrote; empty if nothing is known."""
    if guest.keras_row.makes_folder != "never" or guest.item.append:
        return ""
    return f"it overwrites `{guest.item.filename}`; `append=True` adds to it"


def _where_it_runs(guest: Guest, role: roles.Role, host: Host) -> str:
    """Return the processes that call a guest of this role."""
    if host == "parameter_server" and role != "evaluator":
        return "the coordinator"
    if host == "fit" and guest.is_of_chief:
        return f"{roles.MEANING[role]}; under `MultiWorkerMirroredStrategy`, the chief"
    return roles.MEANING[role]


def _events(
    guest: Guest, callbacks: list[Any], is_native: bool, is_late: bool
) -> list[EventReport]:
    """Return the events that a guest overrides, and when each of them comes."""
    rows = []
    in_list = callbacks if guest.kind == "callback" else []
    for event in lifecycle.overridden(guest.item, guest.kind, in_list):
        facts = lifecycle.EVENTS[event]
        when = facts.native if is_native else facts.bridged
        if is_late and event in _LATE:
            when += "; at most `max_lag` steps late"
        rows.append(EventReport(event, when, None if is_native else facts.counterpart))
    return rows


def _cost(kind: lifecycle.Kind, host: Host, events: list[str]) -> str:
    """Return what a guest adds to each step, by the events that it gets."""
    by_batch = any("batch" in event for event in events)
    by_run = "before_run" in events or "after_run" in events
    if kind == "hook":
        if not by_run:
            return "nothing in a step"
        if host == "session":
            return "two calls in each run, and what it fetches"
        if host == "fit":
            return "two calls in each step; what it fetches is computed with it"
        return "two calls in each step; what it fetches comes back from the workers"
    if host == "session":
        shared = "a read of the global step, which all callbacks share"
        calls = "calls in each batch, the fetch of its logs, and "
        return calls + shared if by_batch else shared
    return "calls in each batch" if by_batch else "nothing in a step"


def _refusal(guest: Guest, host: Host, beside: list[Guest]) -> str:
    """Return why the converters refuse `guest` in `host`; empty if they do not."""
    try:
        if host == "session":
            guest.check_kind()
            if guest.kind == "callback":
                checks.check_guest(
                    v1_tensorboard.with_present_class(guest), has_model=False
                )
        else:
            convert.callbacks_for(guest.item)
        if host == "parameter_server":
            ps_refusals.check_hook(guest.item)
        written.check_folder(guest, beside)
    except (errors.RefusedError, errors.UnwritableError, errors.MissingExtraError) as e:
        return str(e)
    return ""


def _reason(guest: GuestReport, margin: str) -> list[str]:
    """Return why a guest is refused; the command that prints the page stays whole."""
    reason, see, command = guest.reason.partition("See `")
    lines = _filled_lines(reason, margin, len(margin))
    return lines + ([f"{margin}{see}{command}"] if see else [])


def _filled_lines(text: str, begin: str, indent: int) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=begin, subsequent_indent=" " * indent
    )
