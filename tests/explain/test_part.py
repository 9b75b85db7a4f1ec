import pytest

from regard import RegardError
from regard.capture.interventions.names import PARTS
from regard.explain.part import check_explained_part


@pytest.mark.parametrize("part", [None, *PARTS])
def test_parts_of_an_encoder_decoder(part: str | None) -> None:
    check_explained_part(part, pairs=True)


def test_what_a_model_does_not_have_is_refused() -> None:
    check_explained_part(None, pairs=False)
    with pytest.raises(RegardError, match="'cross': the model is not an encoder-decoder"):
        check_explained_part("cross", pairs=False)
    with pytest.raises(RegardError, match="part 'middle': needs encoder, decoder or cross"):
        check_explained_part("middle", pairs=True)
