"""Regions: the inputs whose outputs are to be protected.

One interface, ``Region``, and its members: boxes, balls, lists of points, everywhere, unions and intersections. All are
frozen values that can be published, printed (``in_words``) and written to a file (``to_tree``, ``region_from_tree``).
"""

from __future__ import annotations

from .region_box import Box
from .region_interface import Region
from .region_outputs import OutputRegion
from .region_sets import Intersection, Union
from .region_shapes import Ball, Everywhere, Points
from .region_tree import region_from_tree

__all__ = ["Ball", "Box", "Everywhere", "Intersection", "OutputRegion", "Points", "Region", "Union", "region_from_tree"]
