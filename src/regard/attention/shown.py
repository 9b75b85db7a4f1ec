"""What a map and a recorded call share: they plot and show themselves."""

from typing import TYPE_CHECKING, Any

from regard.errors import RegardError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Showable:
    """Attention that draws itself."""

    def plot(self, head: int | None = None, **how: Any) -> "Axes":
        """Draw the weights as `regard.plot` does. how: `tokens`, `key_tokens`, `batch`, `axes` and its others."""
        from regard.trace.any_attention import plot  # which needs maps and calls

        return plot(self, head=head, **how)

    def show(self, **how: Any) -> Any:
        """Show the interactive page as `regard.show` does. how: `tokens`, `key_tokens`, `batch` and its others."""
        from regard.web.show import show

        return show(self, **how)

    def _repr_html_(self) -> str | None:
        """Make the HTML of a part of the weights, None if they can't be read any more."""
        from regard.trace.any_attention import labelled, named_maps
        from regard.trace.display import map_html

        try:
            shown = labelled(named_maps(self)[0])
            return map_html([shown.weights], shown.labels[1], f"in {shown.name or 'this map'}{shown.item}")
        except RegardError:
            return None
