"""What readers get: published outputs, predictions from them, and files that are safe to open.

It takes a design, its certificate and the owner's values, which are blurred at once. It gives a ``Release``, one file
or a folder of files, and what a reader concludes at new inputs.
"""

from .container import Tensors
from .design_tree import (
    DESIGN_KEYS,
    LONGEST_NAME,
    MOST_PRIORS,
    MOST_SERVED,
    SMALLEST_WEIGHT,
    build_design,
    build_inputs,
    check_shapes,
    describe_design,
    describe_prior,
    describe_tolerance,
)
from .folder import FolderWriter, check_folder, has_release, has_run, is_published
from .predictions import CompressedPosterior, Prediction
from .release import (
    UNSAFE_MESSAGE,
    Release,
    digest_outputs,
    filled_in,
    load,
    make_release,
    noise_in_words,
    refusal,
    release_digest,
    suppressed_in_words,
    why_not,
)
from .rounding import FAR, expected, far_in_words, place_of, rounded, steps_of
