"""Videos and pictures as they are found: what a file holds, when each picture is shown, and the picture at a time.

Times are seconds of the video clock: the first picture stands at 0, whatever the file's own timeline says. A picture is
given as it is shown: upright and with square pixels.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from math import floor
from pathlib import Path
from typing import Any, NamedTuple

import av
import numpy as np
from av.stream import Disposition
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray
from PIL import Image

from reviewer.errors import ReviewerError
from reviewer.trajectory import Trajectory

MAX_PICTURE_PX = 100_000_000
PROBES_KEPT = 16
TIME_TOLERANCE_S = 0.0005
KEY_FRAME_EVERY = 15
GREY_WIDTH_PX, GREY_HEIGHT_PX = 160, 90

# Without the list a text file opens as terminal art, and a playlist makes the library read other files and addresses.
_OPEN_OPTIONS = {
    "format_whitelist": "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,gif,ogg,flv,asf",
    "protocol_whitelist": "file",
}
_KNOWN_KINDS = "MP4, MOV, WebM, Matroska, AVI, MPEG, GIF, Ogg, FLV or WMV"
_PLAYABLE_PROFILES = frozenset({"Constrained Baseline", "Baseline", "Main", "High"})
_PLAYABLE_PIXELS = frozenset({"yuv420p", "yuvj420p"})
_MAX_KEY_GAP_S = 1.05
_MAX_DURATION_ERROR_S = 0.1
_SEEK_MARGINS_S = (0, 2, 20)
_FALLBACK_PICTURE_S = Fraction(1, 25)


class MediaError(ReviewerError):
    """A video or picture that cannot be used; the message names the file and what to do."""


@dataclass(frozen=True)
class Clock:
    """When each picture of a video is shown: picture k at ``k * num / den`` seconds, or at ``pts_s[k]``."""

    num: int = 0
    den: int = 1
    count: int = 0
    pts_s: tuple[float, ...] | None = None

    @classmethod
    def from_ticks(cls, ticks: Sequence[int], last_ticks: int, time_base: Fraction) -> Clock:
        """The clock of pictures at increasing ``ticks`` of ``time_base`` seconds; the first moves to 0.

        ``last_ticks`` is how long the last picture is shown. A rate that never varies is kept as one fraction.
        """
        gap = ticks[1] - ticks[0] if len(ticks) > 1 else last_ticks
        if all(after - before == gap for before, after in pairwise(ticks)):
            period = gap * time_base
            return cls(num=period.numerator, den=period.denominator, count=len(ticks))
        return cls(pts_s=tuple(round(float((tick - ticks[0]) * time_base), 6) for tick in ticks))

    def __len__(self) -> int:
        return self.count if self.pts_s is None else len(self.pts_s)

    def index_at(self, at_s: float) -> int:
        """The picture shown at ``at_s``; the first before it begins and the last after it ends."""
        if self.pts_s is None:
            index = floor((at_s + TIME_TOLERANCE_S) * self.den / self.num)
        else:
            index = bisect_right(self.pts_s, at_s + TIME_TOLERANCE_S) - 1
        return min(max(index, 0), len(self) - 1)

    def time_of(self, index: int) -> float:
        """When picture ``index`` begins, in seconds. Raises IndexError outside the video."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        return index * self.num / self.den if self.pts_s is None else self.pts_s[index]

    def to_json(self) -> dict[str, Any]:
        """``{"num", "den", "count"}`` or ``{"pts_s": [...]}``."""
        if self.pts_s is None:
            return {"num": self.num, "den": self.den, "count": self.count}
        return {"pts_s": list(self.pts_s)}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Clock:
        """Read what ``to_json`` wrote. Raises KeyError or TypeError on anything else."""
        if "pts_s" in document:
            return cls(pts_s=tuple(document["pts_s"]))
        return cls(num=document["num"], den=document["den"], count=document["count"])


@dataclass(frozen=True)
class VideoInfo:
    """What a video file holds.

    ``width_px`` and ``height_px`` are the size as shown. ``start_s`` is the time of the first picture on the original
    file's own timeline. ``proxy_reason`` says why the file should not be served as it is, '' when it may; the clock of
    such a file is that of its packets, and the proxy's clock that of the pictures that could be decoded.
    """

    path: Path
    width_px: int
    height_px: int
    duration_s: float
    start_s: float
    clock: Clock
    codec: str
    proxy_reason: str


class Turn(NamedTuple):
    """How a decoded picture becomes the one shown: first scaled to this size, then turned counter-clockwise."""

    width_px: int
    height_px: int
    degrees: int

    @property
    def shown_px(self) -> tuple[int, int]:
        """Width and height of the picture as shown."""
        return (self.height_px, self.width_px) if self.degrees in (90, 270) else (self.width_px, self.height_px)


class _Scan(NamedTuple):
    ticks: list[int]
    last_ticks: int
    key_ticks: list[int]
    is_timed: bool


class FrameSource:
    """The pictures of a trajectory for a judge, read one at a time when asked for.

    ``video_path`` is the served file or its original, which share the video clock; by default the trajectory's video.
    """

    def __init__(self, trajectory: Trajectory, video_path: Path | None = None) -> None:
        self.trajectory = trajectory
        self.video_path = video_path or trajectory.video_path

    @cached_property
    def video(self) -> VideoInfo | None:
        """What the video holds, or None where there is none. Raises MediaError when it cannot be read."""
        return probe(self.video_path) if self.video_path else None

    def observation(self, index: int) -> Image.Image | None:
        """The screenshot as RGB, or None where it is missing or cannot be read."""
        path = self.trajectory.observations[index].path
        try:
            return open_picture(path) if path else None
        except MediaError:
            return None

    def at(self, at_s: float) -> Image.Image:
        """The picture the video shows at ``at_s`` as RGB. Raises MediaError without a readable video."""
        if self.video_path is None:
            raise MediaError("the run has no video; give it one or use its screenshots", self.trajectory.source)
        return picture_at(self.video_path, at_s)


def open_picture(path: Path) -> Image.Image:
    """Read a still picture as RGB. Raises MediaError when it is missing, broken or larger than 100 megapixels."""
    try:
        with Image.open(path) as image:
            if image.width * image.height > MAX_PICTURE_PX:
                raise MediaError(f"the picture is {image.width}x{image.height}; make it smaller", path.name)
            return image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise MediaError("the picture cannot be read; save it again as PNG or JPEG", path.name) from error


def probe(path: Path) -> VideoInfo:
    """Find out what a video file holds from its packets and pictures; headers are not believed.

    A file that may be served as it is has been decoded to its end. What was found is kept until the file changes.
    Raises MediaError, with one message that names the file, for everything that is no readable video.
    """
    try:
        status = path.stat()
    except OSError:
        return _probe(path)
    found = _probed(path.absolute(), status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return replace(found, path=path)


@lru_cache(maxsize=PROBES_KEPT)
def _probed(path: Path, _size: int, _changed_ns: int, _replaced_ns: int) -> VideoInfo:
    return _probe(path)


def _probe(path: Path) -> VideoInfo:
    with open_video(path) as (container, stream):
        first = next(pictures(container, stream), None)
        if first is None:
            raise MediaError("no picture of the video can be decoded; record or copy it again", path.name)
        turn = turn_of(stream, first)
    with open_video(path) as (container, stream):
        scan = _scan_packets(container, stream)
        if not scan.is_timed:
            scan = _scan_pictures(path)
        reason = _proxy_reason(container, stream, first, turn, scan)
        if not reason and len(_scan_pictures(path).ticks) != len(scan.ticks):
            reason = "Some of its pictures are damaged"
        width_px, height_px = turn.shown_px
        return VideoInfo(
            path=path,
            width_px=width_px,
            height_px=height_px,
            duration_s=_duration_s(scan, stream.time_base),
            start_s=float(scan.ticks[0] * stream.time_base),
            clock=Clock.from_ticks(scan.ticks, scan.last_ticks, stream.time_base),
            codec=stream.codec_context.codec.canonical_name,
            proxy_reason=reason,
        )


def picture_at(path: Path, at_s: float) -> Image.Image:
    """The picture shown at ``at_s`` as RGB; the first before it begins and the last after it ends.

    Raises MediaError when the file is no readable video.
    """
    for margin_s in (*_SEEK_MARGINS_S, None):
        with open_video(path) as (container, stream):
            frame = _frame_at(container, stream, at_s, margin_s)
            if frame is not None:
                return shown_picture(frame, turn_of(stream, frame))
    raise MediaError("no picture of the video can be decoded; record or copy it again", path.name)


def grey_frames(
    path: Path, width_px: int = GREY_WIDTH_PX, height_px: int = GREY_HEIGHT_PX
) -> Iterator[tuple[float, NDArray[np.uint8]]]:
    """All pictures of a video in order, small and grey: (time on the video clock, uint8 array [height, width]).

    Raises MediaError when the file is no readable video; a break in it ends the pictures.
    """
    reformatter = VideoReformatter()
    start: int | None = None
    with open_video(path) as (container, stream):
        # Faster, and safe here: only damaged streams decode differently in several threads, and they get a proxy.
        stream.thread_type = "AUTO"
        for frame in pictures(container, stream):
            start = frame.pts if start is None else start
            degrees = _degrees(frame)
            size = (height_px, width_px) if degrees in (90, 270) else (width_px, height_px)
            small = reformatter.reformat(frame, *size, "gray", interpolation="AREA").to_ndarray()
            yield float((frame.pts - start) * stream.time_base), np.rot90(small, degrees // 90)


def grey_picture(
    picture: Image.Image, width_px: int = GREY_WIDTH_PX, height_px: int = GREY_HEIGHT_PX
) -> NDArray[np.uint8]:
    """A picture as small and grey as ``grey_frames`` gives them: uint8 array [height, width]."""
    frame = av.VideoFrame.from_ndarray(np.asarray(picture.convert("RGB")), "rgb24")
    small: NDArray[np.uint8] = frame.reformat(width_px, height_px, "gray", interpolation="AREA").to_ndarray()
    return small


@contextmanager
def open_video(path: Path) -> Iterator[tuple[Any, Any]]:
    """Open a file and choose its first video stream, as a browser does: (container, stream).

    Raises MediaError for a file that is missing, empty, of no known kind, damaged, without pictures, or too large.
    """
    if not path.is_file():
        raise MediaError("there is no such file; check the path", path.name)
    if path.stat().st_size == 0:
        raise MediaError("the file is empty; record or copy it again", path.name)
    try:
        container = av.open(str(path.absolute()), options=_OPEN_OPTIONS, metadata_errors="replace")
    except av.ArgumentError as error:
        raise MediaError(f"this is no video of a known kind; give it as {_KNOWN_KINDS}", path.name) from error
    except (av.FFmpegError, OSError, ValueError) as error:
        raise MediaError(
            "this is no video, or it was damaged or cut off while recording; record or copy it again", path.name
        ) from error
    with container:
        stream = _first_video_stream(container, path)
        yield container, stream


def pictures(container: Any, stream: Any) -> Iterator[Any]:
    """Decode a stream: frames with strictly increasing ``pts``. What cannot be decoded is passed over."""
    last: int | None = None
    for packet in _packets(container, stream):
        try:
            frames = stream.codec_context.decode(packet if packet.size else None)
        except av.FFmpegError:
            continue
        for frame in frames:
            if frame.pts is None or (last is not None and frame.pts <= last):
                continue
            last = frame.pts
            yield frame


def turn_of(stream: Any, frame: Any) -> Turn:
    """How the frames of a stream are to be scaled and turned to be shown."""
    aspect = stream.sample_aspect_ratio or Fraction(1)
    width_px, height_px = frame.width, frame.height
    if 1 < aspect <= 16:
        width_px = round(width_px * aspect)
    elif Fraction(1, 16) <= aspect < 1:
        height_px = round(height_px / aspect)
    return Turn(width_px, height_px, _degrees(frame))


def last_picture_ticks(ticks: Sequence[int], stated_ticks: int | None, time_base: Fraction) -> int:
    """How long the last picture is shown: as its packet states, else as long as a picture usually is."""
    if stated_ticks and stated_ticks > 0:
        return stated_ticks
    if len(ticks) > 1:
        return int(np.median(np.diff(ticks)))
    return max(1, round(_FALLBACK_PICTURE_S / time_base))


def _first_video_stream(container: Any, path: Path) -> Any:
    streams = [stream for stream in container.streams.video if not stream.disposition & Disposition.attached_pic]
    if not streams:
        raise MediaError("the file holds no moving pictures, only sound or nothing; give a video", path.name)
    stream = streams[0]
    if stream.codec_context is None or not stream.time_base:
        raise MediaError("the video is coded in an unknown way; convert it to H.264 in MP4", path.name)
    if stream.codec_context.width * stream.codec_context.height > MAX_PICTURE_PX:
        size = f"{stream.codec_context.width}x{stream.codec_context.height}"
        raise MediaError(f"the pictures are {size}; make the video smaller", path.name)
    return stream


def _packets(container: Any, stream: Any) -> Iterator[Any]:
    try:
        yield from container.demux(stream)
    except av.FFmpegError:
        return


def _scan_packets(container: Any, stream: Any) -> _Scan:
    packets = [packet for packet in _packets(container, stream) if packet.size and not packet.is_discard]
    timed = sorted((packet.pts, packet.duration, packet.is_keyframe) for packet in packets if packet.pts is not None)
    ticks = [pts for pts, _, _ in timed]
    is_timed = bool(ticks) and len(timed) == len(packets) and len(set(ticks)) == len(ticks)
    last_ticks = last_picture_ticks(ticks, timed[-1][1], stream.time_base) if timed else 1
    return _Scan(ticks, last_ticks, [pts for pts, _, is_key in timed if is_key], is_timed)


def _scan_pictures(path: Path) -> _Scan:
    with open_video(path) as (container, stream):
        frames = [(frame.pts, frame.duration, bool(frame.key_frame)) for frame in pictures(container, stream)]
        ticks = [pts for pts, _, _ in frames]
        last_ticks = last_picture_ticks(ticks, frames[-1][1] if frames else None, stream.time_base)
        return _Scan(ticks, last_ticks, [pts for pts, _, is_key in frames if is_key], False)


def _duration_s(scan: _Scan, time_base: Fraction) -> float:
    return float((scan.ticks[-1] + scan.last_ticks - scan.ticks[0]) * time_base)


def _proxy_reason(container: Any, stream: Any, frame: Any, turn: Turn, scan: _Scan) -> str:
    """Why not every browser plays and seeks the file well, '' when they do."""
    header_s = container.duration / av.time_base if container.duration else 0.0
    codec = stream.codec_context.codec.canonical_name
    is_mp4 = "mp4" in container.format.name and container.metadata.get("major_brand", "").strip() != "qt"
    reasons = (
        (not is_mp4, f"Not every browser plays the container {container.format.name.split(',')[0]}"),
        (codec != "h264", f"Not every browser plays the codec {codec}"),
        (stream.profile not in _PLAYABLE_PROFILES, f"Not every browser plays the H.264 profile {stream.profile}"),
        (frame.format.name not in _PLAYABLE_PIXELS, f"Not every browser plays the pixel format {frame.format.name}"),
        (len(container.streams) > 1, "It has other tracks, and a damaged sound track stops the playback"),
        (not scan.is_timed, "Some pictures have no time of their own"),
        (turn.degrees != 0, "It is recorded turned"),
        ((turn.width_px, turn.height_px) != (frame.width, frame.height), "Its pixels are not square"),
        (scan.ticks[0] != 0, "Its first picture is not at 0 s"),
        (stream.frames == 0, "It has no index to seek by"),
        (abs(header_s - _duration_s(scan, stream.time_base)) > _MAX_DURATION_ERROR_S, "It states a wrong duration"),
        (_is_slow_to_seek(scan, stream.time_base), "Its key frames are more than 1 s apart"),
    )
    return next((sentence for applies, sentence in reasons if applies), "")


def _is_slow_to_seek(scan: _Scan, time_base: Fraction) -> bool:
    """Whether a seek may have to decode both more than a second and more than a few pictures."""
    edges = sorted({scan.ticks[0], *scan.key_ticks, scan.ticks[-1] + 1})
    return any(
        (after - before) * time_base > _MAX_KEY_GAP_S
        and bisect_left(scan.ticks, after) - bisect_left(scan.ticks, before) > KEY_FRAME_EVERY
        for before, after in pairwise(edges)
    )


def _degrees(frame: Any) -> int:
    # A broken matrix in the file gives a meaningless angle.
    return int(frame.rotation) % 360 if abs(frame.rotation) in (90, 180, 270) else 0


def _frame_at(container: Any, stream: Any, at_s: float, margin_s: float | None) -> Any:
    """The frame shown at a time, None when the seek went past it or nothing decodes. Without a margin: no seek."""
    frames = pictures(container, stream)
    shown = next(frames, None)
    if shown is None:
        return None
    target = shown.pts + round((max(at_s, 0.0) + TIME_TOLERANCE_S) / stream.time_base)
    if margin_s is not None:
        shown = None
        try:
            container.seek(target - round(margin_s / stream.time_base), stream=stream)
        except av.FFmpegError:
            return None
        frames = pictures(container, stream)
    for frame in frames:
        if frame.pts > target:
            break
        shown = frame
    return shown


def shown_picture(frame: Any, turn: Turn) -> Image.Image:
    """A decoded frame as it is shown, RGB."""
    image: Image.Image = frame.to_image()
    if image.size != (turn.width_px, turn.height_px):
        image = image.resize((turn.width_px, turn.height_px), Image.Resampling.BILINEAR)
    return image.rotate(turn.degrees, expand=True) if turn.degrees else image
