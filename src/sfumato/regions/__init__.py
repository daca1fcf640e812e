"""The inputs that are sensitive: shapes, unions and intersections, regions by output, regions as text.

It takes numbers, column names and text. It gives regions that say what they contain, where to look inside them and how
to put them into words.
"""

from .boxes import Boxes
from .reading import Token, Tokens, parse_region, region_from_tree, region_text
from .region import Intersection, Points, Region, Union, bound_points
from .shapes import MOST_OUTPUTS, Ball, Box, Everywhere, OutputRegion
