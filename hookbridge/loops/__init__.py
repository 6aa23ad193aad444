"""Training loops that take one set of hooks and callbacks."""
