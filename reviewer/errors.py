"""Errors meant for a person: the message names the file (or thing) and the fix, and no traceback is shown."""


class ReviewerError(Exception):
    """Base of every error whose message a user is meant to read."""
