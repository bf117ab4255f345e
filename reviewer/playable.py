"""Makes a trajectory playable: its video or a proxy, the sizes of its pictures, a thumbnail and its alignment."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from PIL import Image

from reviewer.alignment import Alignment, align
from reviewer.media import MediaError, VideoInfo, open_picture, picture_at, probe
from reviewer.proxy import make_proxy, pictures_to_proxy
from reviewer.trajectory import Observation, Problem, Trajectory

PICTURE_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
THUMBNAIL_PX = 320
THUMBNAIL_QUALITY = 80


@dataclass(frozen=True)
class Playable:
    """What was made of a trajectory. ``trajectory`` has the sizes of its pictures and the problems met on the way.

    ``video`` is the file to play and ``original`` the source's own video, None where it has none that can be read.
    """

    trajectory: Trajectory
    video: VideoInfo
    original: VideoInfo | None
    alignment: Alignment
    thumbnail: Path | None


def make_playable(trajectory: Trajectory, folder: Path, content: str) -> Playable:
    """Probe, make a proxy where one is needed, measure, align. What is made lies in ``folder``, named by ``content``.

    A picture or video that can't be used becomes a problem. Raises MediaError for a plain video that can't be used.
    """
    folder.mkdir(parents=True, exist_ok=True)
    trajectory = _measured(trajectory)
    original: VideoInfo | None = None
    video: VideoInfo | None = None
    placements = None
    if trajectory.video_path is not None:
        try:
            original = probe(trajectory.video_path)
            video = _video_proxy(original, folder) if original.proxy_reason else original
        except MediaError as error:
            if not trajectory.steps and not any(observation.path for observation in trajectory.observations):
                raise
            original = None
            problem = Problem(trajectory.video_path.name, f"{error.reason}; the run is shown without it")
            trajectory = replace(trajectory, problems=(*trajectory.problems, problem))
    if video is None:
        pictures = [observation.path for observation in trajectory.observations]
        video, placements, problems = pictures_to_proxy(pictures, folder / f"{content[:24]}.mp4")
        trajectory = replace(trajectory, problems=(*trajectory.problems, *problems))
    alignment = align(trajectory, video, placements)
    return Playable(
        trajectory, video, original, alignment, _thumbnail(trajectory, video, folder / f"{content[:24]}.jpg")
    )


def _measured(trajectory: Trajectory) -> Trajectory:
    """The sizes of all pictures, as their files have them; one that can't be read is missing and told."""
    observations: list[Observation] = []
    problems = list(trajectory.problems)
    for observation in trajectory.observations:
        width_px = height_px = None
        path = observation.path
        if path is not None:
            try:
                width_px, height_px = picture_size_px(path)
            except MediaError as error:
                problems.append(Problem(path.name, error.reason))
                path = None
        observations.append(Observation(observation.index, path, width_px, height_px))
    return replace(trajectory, observations=tuple(observations), problems=tuple(problems))


def picture_size_px(path: Path) -> tuple[int, int]:
    """Width and height of a still picture from its header. Raises MediaError when it is none."""
    try:
        with Image.open(path, formats=PICTURE_FORMATS) as image:
            return image.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise MediaError("the picture cannot be read; save it again as PNG or JPEG", path.name) from error


def _video_proxy(original: VideoInfo, folder: Path) -> VideoInfo:
    target = folder / f"{sha256_of_file(original.path)[:24]}.mp4"
    return probe(target) if target.is_file() else make_proxy(original, target)


def _thumbnail(trajectory: Trajectory, video: VideoInfo, target: Path) -> Path | None:
    """The last picture there is, small."""
    paths = [observation.path for observation in trajectory.observations if observation.path]
    try:
        picture = open_picture(paths[-1]) if paths else picture_at(video.path, video.duration_s)
    except MediaError:
        return None
    picture.thumbnail((THUMBNAIL_PX, THUMBNAIL_PX))
    picture.save(target, quality=THUMBNAIL_QUALITY)
    return target


def sha256_of_file(path: Path) -> str:
    """The hash of a whole file as hex digits. Raises OSError when it can't be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
