"""Numbers of things, as text."""


def counted(number: int, what: str) -> str:
    """Return a number and its noun, such as "1 file" or "2 files".

    Args:
      number: how many there are.
      what: the noun, whose plural ends with s.

    Returns:
      The text.
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
