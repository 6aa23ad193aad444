"""The rules that rewrite hooks, callbacks and the places that take them."""
