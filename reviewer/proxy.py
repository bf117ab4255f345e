"""Playable proxies: H.264 files every browser plays and seeks exactly, made from a video or from screenshots."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

import av
import numpy as np
from av.video.reformatter import ColorRange, Colorspace, VideoReformatter
from PIL import Image, ImageDraw, ImageFont, ImageOps

from reviewer.media import (
    KEY_FRAME_EVERY,
    MediaError,
    Turn,
    VideoInfo,
    last_picture_ticks,
    open_picture,
    open_video,
    pictures,
    probe,
    shown_picture,
    turn_of,
)
from reviewer.trajectory import Problem

MAX_CANVAS_PX = 1920
CARD_ONLY_CANVAS_PX = (1280, 720)

Placement = tuple[float, float, float, float]

_MAX_TICKS_PER_S = 1_000_000
_FINE_TICKS_PER_S = 90_000
_CARD_TEXT = "No picture was recorded here"
_CARD_COLOUR, _CARD_TEXT_COLOUR = (32, 34, 38), (190, 194, 200)
_BT601, _LIMITED_RANGE = 6, 1


def make_proxy(info: VideoInfo, target: Path, progress: Callable[[float], None] | None = None) -> VideoInfo:
    """Transcode a video to a proxy whose pictures stand at the same times, the first at 0, and describe the proxy.

    The pictures are upright with square pixels; an odd side grows by one pixel that repeats the edge. What cannot be
    decoded is left out. ``progress`` gets fractions of 1 and may raise to stop the work. ``target`` appears only when
    it is complete. Raises MediaError when nothing can be decoded or written.
    """
    report = progress or _unreported
    with open_video(info.path) as (source, stream), _written(target) as output:
        decoded = pictures(source, stream)
        first = next(decoded, None)
        if first is None:
            raise MediaError("no picture of the video can be decoded; record or copy it again", info.path.name)
        turn = turn_of(stream, first)
        time_base = _output_time_base(stream.time_base)
        encoder = _encoder(output, turn.shown_px, time_base, KEY_FRAME_EVERY, stream.average_rate)
        if not first.format.is_rgb:
            encoder.colorspace = first.colorspace
        reformatter = VideoReformatter()
        ticks: list[int] = []
        for frame in chain([first], decoded):
            ticks.append(round((frame.pts - first.pts) * stream.time_base / time_base))
            stated_ticks = round((frame.duration or 0) * stream.time_base / time_base)
            output.mux(encoder.encode(_timed(_playable(frame, turn, reformatter), ticks[-1], time_base)))
            report(min(0.99, float(ticks[-1] * time_base) / info.duration_s))
        _finish(output, encoder, last_picture_ticks(ticks, stated_ticks, time_base))
    report(1.0)
    return replace(probe(target), start_s=info.start_s)


def pictures_to_proxy(
    screenshots: Sequence[Path | None], target: Path, progress: Callable[[float], None] | None = None
) -> tuple[VideoInfo, list[Placement], list[Problem]]:
    """Make a proxy that shows each screenshot for one second, so that observation i stands at second i.

    Returns the proxy, where each screenshot lies as (x, y, width, height) fractions of the canvas, and a problem for
    each screenshot that cannot be read. The canvas has the most common size, at most 1920 px long; other pictures are
    fitted in centred. A missing or broken screenshot shows a plain card. Raises MediaError for an empty sequence and
    when nothing can be written.
    """
    if not screenshots:
        raise MediaError("the run has no screenshots to show; import it with its pictures", target.name)
    report = progress or _unreported
    canvas_px = _canvas_px([size for size in map(_size_px, screenshots) if size])
    card = _card(canvas_px)
    placements: list[Placement] = []
    problems: list[Problem] = []
    with _written(target) as output:
        encoder = _encoder(output, canvas_px, Fraction(1), key_frame_every=1, rate=Fraction(1))
        for second, path in enumerate(screenshots):
            canvas, placement = card, (0.0, 0.0, 1.0, 1.0)
            if path:
                try:
                    canvas, placement = _fitted(open_picture(path), canvas_px)
                except MediaError as error:
                    problems.append(Problem(path.name, error.reason))
            placements.append(placement)
            output.mux(encoder.encode(_timed(_frame_of(canvas), second, Fraction(1))))
            report((second + 1) / len(screenshots))
        _finish(output, encoder, 1)
    return probe(target), placements, problems


@contextmanager
def _written(target: Path) -> Iterator[Any]:
    """An open MP4 that takes its name only when the block ends well. Raises MediaError when it cannot be written."""
    part = target.with_name(f".{uuid4().hex}.part")
    try:
        options = {"movflags": "+faststart"}
        with av.open(str(part.absolute()), "w", format="mp4", options=options) as output:
            yield output
        os.replace(part, target)
    except (av.FFmpegError, OSError) as error:
        raise MediaError(
            f"the playable copy cannot be written ({error.strerror}); check space and rights", target.name
        ) from error
    finally:
        with suppress(OSError):
            part.unlink()


def _encoder(
    output: Any, shown_px: tuple[int, int], time_base: Fraction, key_frame_every: int, rate: Fraction | None
) -> Any:
    keys = f"keyint={key_frame_every}:min-keyint={key_frame_every}:scenecut=0:bframes=0:rc-lookahead=10"
    options = {"preset": "veryfast", "crf": "20", "x264-params": keys}
    stream = output.add_stream("libx264", rate=min(rate or Fraction(25), Fraction(240)), options=options)
    stream.width, stream.height = map(_even, shown_px)
    stream.pix_fmt = "yuv420p"
    encoder = stream.codec_context
    encoder.time_base = time_base
    encoder.colorspace, encoder.color_range = _BT601, _LIMITED_RANGE
    return encoder


def _finish(output: Any, encoder: Any, last_ticks: int) -> None:
    # The container only states how long the last picture is shown where its packet says so.
    packets = encoder.encode(None)
    packets[-1].duration = last_ticks
    output.mux(packets)


def _output_time_base(time_base: Fraction) -> Fraction:
    return Fraction(1, time_base.denominator if time_base.denominator <= _MAX_TICKS_PER_S else _FINE_TICKS_PER_S)


def _playable(frame: Any, turn: Turn, reformatter: VideoReformatter) -> Any:
    """The frame as shown, in even size and 4:2:0."""
    if turn.degrees or turn.width_px % 2 or turn.height_px % 2:
        pixels = np.asarray(shown_picture(frame, turn))
        return _frame_of(np.pad(pixels, ((0, pixels.shape[0] % 2), (0, pixels.shape[1] % 2), (0, 0)), "edge"))
    colours = Colorspace.ITU601 if frame.format.is_rgb else None
    return reformatter.reformat(
        frame, turn.width_px, turn.height_px, "yuv420p", dst_colorspace=colours, dst_color_range=ColorRange.MPEG
    )


def _frame_of(pixels: Any) -> Any:
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), "rgb24")
    return frame.reformat(format="yuv420p", dst_colorspace=Colorspace.ITU601, dst_color_range=ColorRange.MPEG)


def _timed(frame: Any, ticks: int, time_base: Fraction) -> Any:
    frame.pts, frame.time_base = ticks, time_base
    # A decoded frame remembers its kind, which would make the encoder place key frames where the source had them.
    frame.pict_type = 0
    return frame


def _size_px(path: Path | None) -> tuple[int, int] | None:
    if path is None:
        return None
    try:
        with Image.open(path) as image:
            return image.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def _canvas_px(sizes_px: Sequence[tuple[int, int]]) -> tuple[int, int]:
    if not sizes_px:
        return CARD_ONLY_CANVAS_PX
    (width_px, height_px), _ = Counter(sizes_px).most_common(1)[0]
    scale = min(1.0, MAX_CANVAS_PX / max(width_px, height_px))
    return _even(round(width_px * scale)), _even(round(height_px * scale))


def _even(length_px: int) -> int:
    return max(2, length_px + length_px % 2)


def _fitted(picture: Image.Image, canvas_px: tuple[int, int]) -> tuple[Image.Image, Placement]:
    """The picture in the middle of a canvas, and where it lies there as fractions."""
    spare_px = (canvas_px[0] - picture.width, canvas_px[1] - picture.height)
    if not all(0 <= spare <= 1 for spare in spare_px):
        picture = ImageOps.contain(picture, canvas_px, Image.Resampling.LANCZOS)
    left_px, top_px = (canvas_px[0] - picture.width) // 2, (canvas_px[1] - picture.height) // 2
    canvas = Image.new("RGB", canvas_px)
    canvas.paste(picture, (left_px, top_px))
    width_px, height_px = canvas_px
    placement = (left_px / width_px, top_px / height_px, picture.width / width_px, picture.height / height_px)
    return canvas, placement


def _card(canvas_px: tuple[int, int]) -> Image.Image:
    card = Image.new("RGB", canvas_px, _CARD_COLOUR)
    font = ImageFont.load_default(max(8, min(canvas_px) // 20))
    middle = (canvas_px[0] / 2, canvas_px[1] / 2)
    ImageDraw.Draw(card).text(middle, _CARD_TEXT, _CARD_TEXT_COLOUR, font, anchor="mm")
    return card


def _unreported(_fraction: float) -> None:
    return None
