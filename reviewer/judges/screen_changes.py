"""How two pictures of a screen differ, and whether the difference is more than the screen's own life.

A blinking text cursor, the clock in a bar at the edge, the drawn pointer and compression noise change a screen without
anyone having done anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops
from scipy import ndimage

_Mask = NDArray[np.bool_]
_EIGHT_NEIGHBOURS = np.ones((3, 3), dtype=np.uint8)


@dataclass(frozen=True)
class ChangeSettings:
    """What counts as a change; sizes are pixels of the pictures or shares of their height or width.

    ``level`` is the difference of one colour channel, of 255, above which a pixel has changed. Regions smaller than
    ``min_blob_px`` are noise: screenshots have none, pictures of a video do. ``min_side_px`` is the smallest
    picture in which a change can be judged.
    """

    level: int = 16
    min_blob_px: int = 1
    min_side_px: int = 32
    bar_max_width: float = 0.003
    bar_min_aspect: float = 3.0
    bar_max_height: float = 0.045
    clock_strip_height: float = 0.05
    clock_max_width: float = 0.08
    pointer_max_side: float = 0.045
    pointer_tip_tolerance: float = 0.004
    pointer_min_overlap: float = 0.7


def count(number: int, noun: str) -> str:
    """``1 pixel``, ``2 pixels``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class Box(NamedTuple):
    """A region of a picture in pixels: the first column and row, and its size."""

    left: int
    top: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """The column after the last one."""
        return self.left + self.width

    @property
    def bottom(self) -> int:
        """The row after the last one."""
        return self.top + self.height


class ChangeKind(StrEnum):
    """What a difference between two pictures amounts to."""

    SAME = "same"
    CHANGED = "changed"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Change:
    """The difference of two pictures: ``share`` of the pixels changed, ``largest`` the biggest region that did.

    ``why`` says in a few words what makes it the same or unclear where pixels differ, '' elsewhere.
    """

    kind: ChangeKind
    changed_px: int = 0
    share: float = 0.0
    largest: Box | None = None
    why: str = ""

    def __str__(self) -> str:
        numbers = f"{count(self.changed_px, 'pixel')} changed ({self.share:.2%})"
        if self.largest:
            box = self.largest
            numbers += f", the largest region {box.width}x{box.height} at ({box.left}, {box.top})"
        return f"{self.kind}: {numbers}" + (f"; {self.why}" if self.why else "")


@dataclass(frozen=True)
class Act:
    """What was done between two pictures, as far as it tells their differences apart.

    ``at`` and ``pointer_was`` are fractions of the screen: where the action aims and where the pointer stood before.
    """

    is_pointing: bool = False
    at: tuple[float, float] | None = None
    pointer_was: tuple[float, float] | None = None


class _Blobs(NamedTuple):
    """The changed regions: ``mask`` is the part of the picture at ``left``, ``top`` that holds them all."""

    mask: _Mask
    left: int
    top: int
    boxes: list[Box]
    changed_px: int


def compare(before: Image.Image, after: Image.Image, act: Act, settings: ChangeSettings) -> Change:
    """Compare two RGB pictures of the screen around an action.

    Pictures of different sizes differ. Pictures too small to judge, or of one colour, are unclear.
    """
    if before.size != after.size:
        return Change(ChangeKind.CHANGED, before.width * before.height, 1.0, why="the size of the screen changed")
    if min(before.size) < settings.min_side_px:
        return Change(ChangeKind.UNCLEAR, why="the pictures are too small to judge")
    mask = _changed(before, after, settings.level)
    if not mask.getbbox():
        if before.getcolors(1):
            return Change(ChangeKind.UNCLEAR, why="the pictures show one colour only")
        return Change(ChangeKind.SAME)
    blobs = _blobs(mask, settings.min_blob_px)
    kind, why = _explained(before, after, blobs, act, settings)
    largest = max(blobs.boxes, key=lambda box: box.width * box.height, default=None)
    return Change(kind, blobs.changed_px, blobs.changed_px / (before.width * before.height), largest, why)


def _explained(
    before: Image.Image, after: Image.Image, blobs: _Blobs, act: Act, settings: ChangeSettings
) -> tuple[ChangeKind, str]:
    """Whether the regions are a change, and what they are where they are none."""
    if not blobs.boxes:
        return ChangeKind.SAME, ""
    if _is_clock(blobs.boxes, act, before.size, settings):
        return ChangeKind.SAME, "it is a clock or sign in the bar at the edge"
    if len(blobs.boxes) == 1 and _is_bar(blobs.boxes[0], before.height, settings):
        if act.is_pointing and _contrast(before, blobs.boxes[0]) > _contrast(after, blobs.boxes[0]):
            return ChangeKind.SAME, "it is a text cursor that went out"
        return ChangeKind.UNCLEAR, "it may be a blinking text cursor"
    if _is_moved_pointer(blobs, act, before.size, settings):
        return ChangeKind.SAME, "it is the pointer that moved"
    return ChangeKind.CHANGED, ""


def _changed(before: Image.Image, after: Image.Image, level: int) -> Image.Image:
    """A grey picture that is white where some colour channel differs by more than ``level``."""
    red, green, blue = ImageChops.difference(before, after).split()
    largest = ImageChops.lighter(ImageChops.lighter(red, green), blue)
    return largest.point([0] * (level + 1) + [255] * (255 - level))


def _blobs(changed: Image.Image, min_blob_px: int) -> _Blobs:
    left, top, right, bottom = changed.getbbox() or (0, 0, 0, 0)
    labels, _ = ndimage.label(np.asarray(changed.crop((left, top, right, bottom))), structure=_EIGHT_NEIGHBOURS)
    sizes_px = np.bincount(labels.ravel())
    is_kept = sizes_px >= min_blob_px
    is_kept[0] = False
    boxes = [
        Box(left + columns.start, top + rows.start, columns.stop - columns.start, rows.stop - rows.start)
        for number, (rows, columns) in enumerate(ndimage.find_objects(labels), start=1)
        if is_kept[number]
    ]
    return _Blobs(is_kept[labels], left, top, boxes, int(sizes_px[is_kept].sum()))


def _enclosing(boxes: Sequence[Box]) -> Box:
    left, top = min(box.left for box in boxes), min(box.top for box in boxes)
    return Box(left, top, max(box.right for box in boxes) - left, max(box.bottom for box in boxes) - top)


def _is_clock(boxes: Sequence[Box], act: Act, size_px: tuple[int, int], settings: ChangeSettings) -> bool:
    """Something narrow in a bar at the top or bottom edge, while the action aimed at neither."""
    width_px, height_px = size_px
    strip_px = settings.clock_strip_height * height_px
    around = _enclosing(boxes)
    is_at_edge = around.bottom <= strip_px or around.top >= height_px - strip_px
    if not is_at_edge or around.width > settings.clock_max_width * width_px or act.at is None:
        return False
    return 2 * settings.clock_strip_height < act.at[1] < 1 - 2 * settings.clock_strip_height


def _is_bar(box: Box, height_px: int, settings: ChangeSettings) -> bool:
    max_width_px = max(2.0, settings.bar_max_width * height_px)
    is_tall = box.height >= settings.bar_min_aspect * box.width
    return box.width <= max_width_px and is_tall and box.height <= max(8.0, settings.bar_max_height * height_px)


def _contrast(picture: Image.Image, box: Box) -> float:
    """How much a region stands out from the columns on both sides of it, in grey levels."""
    margin_px = 2
    left, right = max(box.left - margin_px, 0), min(box.right + margin_px, picture.width)
    grey = np.asarray(picture.crop((left, box.top, right, box.bottom)).convert("L"), dtype=np.int16)
    inside = grey[:, box.left - left : box.right - left]
    outside = np.hstack([grey[:, : box.left - left], grey[:, box.right - left :]])
    return float(abs(inside.mean() - outside.mean())) if outside.size else 0.0


def _is_moved_pointer(blobs: _Blobs, act: Act, size_px: tuple[int, int], settings: ChangeSettings) -> bool:
    """Whether the same arrow left one place and lies with its tip at the other, and nothing else changed."""
    if act.at is None or act.pointer_was is None:
        return False
    side_px = round(settings.pointer_max_side * size_px[1])
    if blobs.changed_px > 2 * side_px**2:
        return False
    mask = np.zeros((size_px[1], size_px[0]), dtype=np.bool_)
    height_px, width_px = blobs.mask.shape
    mask[blobs.top : blobs.top + height_px, blobs.left : blobs.left + width_px] = blobs.mask
    tip_px = max(1, round(settings.pointer_tip_tolerance * size_px[1]))
    here, there = (_window(mask, at, side_px, tip_px) for at in (act.pointer_was, act.at))
    either_px = np.count_nonzero(here | there) if here.shape == there.shape else 0
    if either_px == 0 or np.count_nonzero(here) + np.count_nonzero(there) != blobs.changed_px:
        return False
    overlap = np.count_nonzero(here & there) / either_px
    return bool(overlap >= settings.pointer_min_overlap) and _is_arrow(here | there)


def _window(mask: _Mask, at: tuple[float, float], side_px: int, tip_px: int) -> _Mask:
    """The part of a mask where a pointer with its tip at this place would be drawn."""
    height_px, width_px = mask.shape
    left, top = round(at[0] * width_px) - tip_px, round(at[1] * height_px) - tip_px
    return mask[max(top, 0) : top + side_px, max(left, 0) : left + side_px]


def _is_arrow(mask: _Mask) -> bool:
    """Whether a shape is taller than wide and begins at its top left, as an arrow does and a dot does not."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    height_px, width_px = rows[-1] - rows[0] + 1, columns[-1] - columns[0] + 1
    top_left = mask[rows[0] : rows[0] + height_px // 4 + 1, columns[0] : columns[0] + width_px // 2 + 1]
    top = mask[rows[0] : rows[0] + height_px // 4 + 1]
    return bool(height_px > width_px >= 4 and np.count_nonzero(top_left) >= 0.9 * np.count_nonzero(top))
