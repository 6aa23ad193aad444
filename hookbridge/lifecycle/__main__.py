"""Prints the tables of the documentation: python -m hookbridge.lifecycle."""

from __future__ import annotations

from hookbridge.lifecycle.tables import (
    TRAINING_EVENTS,
    endings_markdown,
    event_map_markdown,
)

if __name__ == "__main__":
    print(event_map_markdown())
    print(event_map_markdown(TRAINING_EVENTS))
    print(endings_markdown())
