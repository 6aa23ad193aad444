"""The model that a callback sees in a session, over the session's variables."""
