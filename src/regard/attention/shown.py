"""What a map and a recorded call share: they plot and show themselves."""

from typing import TYPE_CHECKING, Any

from regard.lazy import from_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Showable:
    """Attention that draws itself."""

    def plot(self, head: int | None = None, **how: Any) -> "Axes":
        """Draw the weights as `regard.plot` does. how: `tokens`, `key_tokens`, `batch`, `axes` and its others."""
        return from_above("plot")(self, head=head, **how)

    def show(self, **how: Any) -> Any:
        """Show the interactive page as `regard.show` does. how: `tokens`, `key_tokens`, `batch` and its others."""
        return from_above("show")(self, **how)

    def _repr_html_(self) -> str | None:
        """Make the HTML of a part of the weights, None if they can't be read any more."""
        return from_above("attention_html")(self)
