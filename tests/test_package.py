"""What the package offers at its top, and when it is loaded."""

import subprocess
import sys

import pytest

import regard


def test_every_name_of_the_package_is_there() -> None:
    for name in regard.__all__:
        assert getattr(regard, name) is not None
    assert set(regard.__all__) <= set(dir(regard))
    assert regard.masks.causal().high == 0
    assert callable(regard.nn.positions.sinusoidal)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="module 'regard' has no attribute 'attention_span'"):
        _ = regard.attention_span


def test_importing_it_imports_nothing_heavy() -> None:
    code = "import sys, regard; print(sorted({'torch', 'numpy', 'numba', 'transformers'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
