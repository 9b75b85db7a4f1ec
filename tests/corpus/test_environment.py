"""Versions and products that a store's bytes depend on."""

import os

import pytest
import torch

from regard.attention.kernels import matmul
from regard.corpus.environment import (
    check_store_environment,
    check_store_products,
    describe_store_environment,
    pinned_store_products,
    set_environment,
)
from regard.errors import RegardError


def test_the_environment_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_TEST_ONE", "1")
    monkeypatch.delenv("REGARD_TEST_TWO", raising=False)
    with set_environment({"REGARD_TEST_ONE": "2", "REGARD_TEST_TWO": "2"}):
        assert (os.environ["REGARD_TEST_ONE"], os.environ["REGARD_TEST_TWO"]) == ("2", "2")
    assert os.environ["REGARD_TEST_ONE"] == "1"
    assert "REGARD_TEST_TWO" not in os.environ


def test_a_store_of_other_versions_is_refused() -> None:
    here = describe_store_environment()
    assert here["torch"] == torch.__version__
    with pytest.raises(RegardError, match="made with torch 1.0, here is"):
        check_store_environment(here | {"torch": "1.0"})


def test_a_store_of_other_products_is_refused_and_the_way_on_is_said() -> None:
    here = describe_store_environment()
    check_store_products(here)
    with pytest.raises(RegardError, match=f"product none, here is {here['tiles']}: .*REGARD_PRODUCT=none goes on"):
        check_store_products(here | {"tiles": "none"})


def test_a_store_of_another_openvino_or_where_there_is_none_is_refused() -> None:
    here = describe_store_environment("openvino")
    assert here == describe_store_environment() | {"openvino": here["openvino"]}
    check_store_environment(here)
    with pytest.raises(RegardError, match=f"made with openvino 2000.1, here is {here['openvino']}"):
        check_store_environment(here | {"openvino": "2000.1"})


def test_products_and_threads_are_pinned_inside_alone() -> None:
    before, held = torch.get_num_threads(), dict(os.environ)
    with pinned_store_products(describe_store_environment() | {"tiles": "blas"}):
        assert torch.get_num_threads() == 1
        assert matmul.product() is matmul.blas
    with (
        pytest.raises(RegardError, match="given 'none', needs blas"),
        pinned_store_products(describe_store_environment() | {"tiles": "none"}),
    ):
        pass
    assert (torch.get_num_threads(), dict(os.environ)) == (before, held)
