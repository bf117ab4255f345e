"""Trajectory Reviewer: play, judge and correct the runs of computer-use agents."""

__version__ = "0.1.0"
