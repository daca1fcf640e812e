"""The inputs that are sensitive: shapes, unions and intersections, regions by output, regions as text.

In come numbers, column names and text. Out come regions that say what they contain, where to look inside them and how
they are called.
"""

from .region import Region
from .sets import MOST_OUTPUTS, Intersection, OutputRegion, Union
from .shapes import Ball, Box, Everywhere, Points, bound_points
from .text import parse_region
from .tree import region_from_tree
