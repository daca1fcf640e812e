"""The inputs that are sensitive: shapes, unions and intersections, regions by output, regions as text.

It takes numbers, column names and text. It gives regions that say what they contain, where to look inside them and how
to put them into words.
"""

from .by_output import MOST_OUTPUTS, OutputRegion
from .region import Intersection, Points, Region, Union, bound_points
from .shapes import Ball, Box, Everywhere
from .text import parse_region
from .tokens import Token, Tokens
from .tree import region_from_tree
