"""Validators of lists: `each_once` and `different`."""

from typing import Annotated

import pytest
from pydantic import AfterValidator, Field, ValidationError

from companion import Parameters
from companion.project.parameters import different, each_once


class Toy(Parameters):
    """Parameters with two lists: at least two lengths, and shapes in the order in which they are given."""

    lengths: Annotated[list[int], AfterValidator(each_once(2, "a line is fitted to them"))]
    shapes: Annotated[list[str], AfterValidator(different("each is a panel"))] = Field(["square", "circle"])


def test_each_once_sorts_a_list_and_removes_repeated_values():
    assert Toy(lengths=[3, 1, 3]).lengths == [1, 3]


def test_too_few_different_values_are_refused_with_the_reason():
    with pytest.raises(ValidationError, match="at least 2 different values, because a line is fitted to them"):
        Toy(lengths=[3, 3])


def test_a_list_of_different_values_keeps_their_order():
    assert Toy(lengths=[1, 3], shapes=["square", "circle"]).shapes == ["square", "circle"]


def test_a_value_given_twice_is_refused_with_the_reason():
    with pytest.raises(ValidationError, match=r"shapes\n.*needs different values, because each is a panel"):
        Toy(lengths=[1, 3], shapes=["square", "circle", "square"])
