"""Examples for `test_transformations.py`: all of `lib` but `lib.single_location`.

Each maker returns a function of one pytree of floating-point arrays, and the value at which the transformations are
tried. Fixed arguments, such as keys, counts and functions, are in its closure.
"""

from lib import finite_prompt, partition

EXAMPLES = {
    "lib.partition.mean_log_sum": lambda: (lambda x: partition.mean_log_sum(*x), (1.5, 3.0)),
    "lib.partition.square_given_others": lambda: (lambda x: partition.square_given_others(*x), (1.5, 3.0)),
    "lib.finite_prompt.participation": lambda: (lambda x: finite_prompt.participation(*x), (1.5, 3.0)),
    "lib.finite_prompt.score_error": lambda: (lambda x: finite_prompt.score_error(*x), (1.5, 3.0)),
    "lib.finite_prompt.typical_participation": lambda: (
        lambda x: finite_prompt.typical_participation(*x),
        (1.5, 3.0),
    ),
}
