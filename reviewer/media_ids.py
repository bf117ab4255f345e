"""Names of media: opaque to the browser, and others when the content changes, so that it may keep what it has."""

from __future__ import annotations

import hashlib

VIDEO = "video"
THUMBNAIL = "thumbnail"


def media_url(id: str) -> str:
    """Where the browser finds a media; relative to the page when it is served under a prefix."""
    return f"/review/media/{id}"


def observation_role(index: int) -> str:
    """The role of the picture of one observation."""
    return f"observation/{index}"


def media_id(content_hash: str, role: str) -> str:
    """24 hex digits for one role in a trajectory of this content: ``VIDEO``, ``THUMBNAIL`` or an observation's."""
    return hashlib.sha256(f"{content_hash}/{role}".encode()).hexdigest()[:24]
