"""What an item is, which events it overrides, and which process calls it."""
