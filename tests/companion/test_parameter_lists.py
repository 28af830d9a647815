"""Lists of parameters are checked by one rule, whatever they list."""

from typing import Annotated

import pytest
from pydantic import AfterValidator, Field, ValidationError

from companion import Parameters
from companion.project.parameters import different, each_once


class Toy(Parameters):
    """Two lengths at least, and shapes in the order they are given."""

    lengths: Annotated[list[int], AfterValidator(each_once(2, "a line goes through them"))]
    shapes: Annotated[list[str], AfterValidator(different("each is a panel"))] = Field(["square", "circle"])


def test_a_list_has_each_value_once_and_in_order():
    assert Toy(lengths=[3, 1, 3]).lengths == [1, 3]


def test_too_few_different_values_are_refused_with_the_reason():
    with pytest.raises(ValidationError, match="at least 2 different values, because a line goes through them"):
        Toy(lengths=[3, 3])


def test_a_list_of_different_values_keeps_their_order():
    assert Toy(lengths=[1, 3], shapes=["square", "circle"]).shapes == ["square", "circle"]


def test_a_value_given_twice_is_refused_with_the_reason():
    with pytest.raises(ValidationError, match=r"shapes\n.*needs different values, because each is a panel"):
        Toy(lengths=[1, 3], shapes=["square", "circle", "square"])
