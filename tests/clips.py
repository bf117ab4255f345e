"""Test clips whose every picture carries its own number as a barcode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

BARCODE_BITS = 12
CELL_PX = 16
WIDTH_PX, HEIGHT_PX = BARCODE_BITS * CELL_PX, 96
TIME_BASE = Fraction(1, 90_000)


def barcode(number: int, width_px: int = WIDTH_PX, height_px: int = HEIGHT_PX) -> NDArray[np.uint8]:
    """An RGB picture [height, width, 3]: the number in black and white columns, the most significant bit first."""
    bits = [(number >> shift) & 1 for shift in reversed(range(BARCODE_BITS))]
    row = np.repeat(np.asarray(bits, np.uint8) * 255, width_px // BARCODE_BITS)
    row = np.pad(row, (0, width_px - len(row)), "edge")
    return np.broadcast_to(row[None, :, None], (height_px, width_px, 3)).copy()


def number_of(picture: Image.Image) -> int:
    """The number a picture carries, however it was scaled."""
    levels = np.asarray(picture.convert("L")).mean(axis=0)
    centres = ((np.arange(BARCODE_BITS) + 0.5) * len(levels) / BARCODE_BITS).astype(int)
    return sum(1 << (BARCODE_BITS - 1 - bit) for bit in range(BARCODE_BITS) if levels[centres[bit]] > 127)


def constant_times(rate: int, count: int, start_s: float = 0.0) -> list[float]:
    """Picture times of a constant rate."""
    return [start_s + index / rate for index in range(count)]


def variable_times(count: int, start_s: float = 0.0) -> list[float]:
    """Picture times with gaps from 20 ms to more than a second, always the same."""
    gaps_s = [0.02 + (index * 37 % 11) * 0.04 + (0.9 if index % 9 == 4 else 0.0) for index in range(count - 1)]
    return [start_s + float(second) for second in np.concatenate([[0.0], np.cumsum(gaps_s)])]


def write_clip(
    path: Path,
    times_s: Sequence[float] | None = None,
    pictures: Iterable[NDArray[np.uint8]] | None = None,
    *,
    fps: int = 30,
    count: int = 30,
    start_s: float = 0.0,
    codec: str = "libx264",
    pixels: str = "yuv420p",
    key_frame_every: int = 250,
    last_s: float | None = None,
    width_px: int = WIDTH_PX,
    height_px: int = HEIGHT_PX,
    sample_aspect: Fraction | None = None,
    with_sound: bool = False,
) -> Path:
    """Write pictures, by default barcodes from 0 up, to be shown at these times, by default of a constant rate.

    The container is the one the name says. The last picture is shown for ``last_s``, by default one period.
    """
    times_s = constant_times(fps, count, start_s) if times_s is None else times_s
    shown = pictures or (barcode(number, width_px, height_px) for number in range(len(times_s)))
    options = {"preset": "ultrafast", "bf": "0", "sc_threshold": "0"} if codec == "libx264" else {}
    with av.open(str(path), "w") as output:
        stream = output.add_stream(codec, rate=30, options=options)
        stream.width, stream.height, stream.pix_fmt = width_px, height_px, pixels
        stream.codec_context.gop_size = key_frame_every
        if sample_aspect:
            stream.codec_context.sample_aspect_ratio = sample_aspect
        time_base = TIME_BASE if codec in ("libx264", "libx265") else Fraction(1, 1000)
        stream.codec_context.time_base = time_base
        sound = output.add_stream("aac", rate=48_000) if with_sound else None
        for at_s, picture in zip(times_s, shown, strict=True):
            frame = av.VideoFrame.from_ndarray(picture, "rgb24").reformat(format=pixels)
            frame.pts, frame.time_base = round(at_s / time_base), time_base
            output.mux(stream.codec_context.encode(frame))
        packets = stream.codec_context.encode(None)
        if packets:
            packets[-1].duration = round((1 / fps if last_s is None else last_s) / time_base)
        output.mux(packets)
        if sound is not None:
            silence = av.AudioFrame.from_ndarray(np.zeros((1, 4096), np.float32), "fltp", "mono")
            silence.sample_rate, silence.pts = 48_000, 0
            output.mux(sound.encode(silence))
            output.mux(sound.encode(None))
    return path
