"""Turns screencast frames with their times into an H.264 file of variable frame rate."""

from __future__ import annotations

import io
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from PIL import Image

TICKS_PER_S = 90_000
CRF = 34
KEYFRAME_EVERY = 15
LONGEST_HOLD_S = 0.3
FRAME_S = 1 / 30


@dataclass(frozen=True)
class Frame:
    """One picture of the screencast and the second of the recording from which it shows."""

    at_s: float
    png: bytes

    def pixels(self) -> np.ndarray:
        """The picture as height x width x 3 bytes."""
        return np.asarray(Image.open(io.BytesIO(self.png)).convert("RGB"))


def held(frames: list[Frame], end_s: float) -> list[Frame]:
    """The frames with stills repeated, and the last picture repeated at the end.

    A player stands on pictures, so that a long still would be one place in time; a repeated one costs almost nothing.
    """
    out: list[Frame] = []
    for frame, next_s in zip(frames, [f.at_s for f in frames[1:]] + [end_s], strict=True):
        out.append(frame)
        while next_s - out[-1].at_s > LONGEST_HOLD_S:
            out.append(Frame(out[-1].at_s + LONGEST_HOLD_S, frame.png))
    if end_s - FRAME_S > out[-1].at_s:
        out.append(Frame(end_s - FRAME_S, frames[-1].png))
    return out


def frame_at(frames: list[Frame], at_s: float) -> Frame:
    """The frame on screen at a time of the recording."""
    shown = [frame for frame in frames if frame.at_s <= at_s]
    return shown[-1] if shown else frames[0]


def encode(frames: list[Frame], end_s: float, path: Path) -> None:
    """Write the recording; colours are tagged BT.709, which is what players assume at this size."""
    height, width, _ = frames[0].pixels().shape
    with av.open(str(path), "w", options={"movflags": "+faststart"}) as container:
        stream = container.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, TICKS_PER_S)
        stream.codec_context.gop_size = KEYFRAME_EVERY
        stream.codec_context.max_b_frames = 0
        stream.options = {"crf": str(CRF), "preset": "slow", "tune": "animation"}
        context = stream.codec_context
        context.colorspace = context.color_primaries = context.color_trc = 1
        context.color_range = 1
        last_pts = -1
        for frame in held(frames, end_s):
            pts = round(frame.at_s * TICKS_PER_S)
            if pts <= last_pts:
                continue
            picture = av.VideoFrame.from_ndarray(frame.pixels(), format="rgb24")
            picture = picture.reformat(format="yuv420p", dst_colorspace="ITU709", dst_color_range="MPEG")
            picture.pts, picture.time_base, last_pts = pts, Fraction(1, TICKS_PER_S), pts
            picture.duration = round(FRAME_S * TICKS_PER_S)
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
