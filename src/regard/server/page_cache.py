"""Keep what was traced for as long as there is room, so that its numbers can be asked for one by one."""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from regard.server.tiles import ZoomMap
from regard.web.page import Page

if TYPE_CHECKING:  # of what servers without a store do without
    from regard.server.corpora import PanelOccurrences


@dataclass
class CachedPage:
    """One page. data: its JSON. maps: of the calls whose weights come as tiles, by their number. size: in bytes.

    places: what the points or rows of panels are, by the panel's number, where they are places in a store's texts.
    alone: makes the page that works without the server, where that is another one.
    """

    page: Page
    maps: dict[int, ZoomMap] = field(default_factory=dict)
    places: "dict[int, PanelOccurrences]" = field(default_factory=dict)
    alone: Callable[[], Page] | None = None
    data: bytes = b""
    size: int = 0

    def __post_init__(self) -> None:
        for panel in self.places:
            self.page.panels[panel]["places"] = True
        self.data = json.dumps(self.page.data(), ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
        blobs = sum(len(blob) for blob in self.page.numbers.blobs)
        looked_up = sum(each.size for each in self.places.values())
        self.size = len(self.data) + blobs + looked_up + sum(each.size for each in self.maps.values())

    def numbers(self, at: int) -> bytes:
        """Return the deflated bytes of its numbers. Raises HTTPException where there are none of that number."""
        if not 0 <= at < len(self.page.numbers.blobs):
            raise HTTPException(404, f"numbers: given {at}, the page has {len(self.page.numbers.blobs)}")
        return self.page.numbers.blobs[at]

    def map(self, call: int) -> ZoomMap:
        """The map of a call whose weights come as tiles. Raises HTTPException where there is none of that number."""
        if call not in self.maps:
            raise HTTPException(404, f"call: given {call}, its weights are not served, or there is no such call")
        return self.maps[call]

    def places_of(self, panel: int) -> "PanelOccurrences":
        """What the points or rows of a panel are. Raises HTTPException where they are no places, or there is none."""
        if panel not in self.places:
            raise HTTPException(404, f"panel: given {panel}, its rows are no places, or there is no such panel")
        return self.places[panel]


class PageCache:
    """The pages that are kept, those looked at last for the longest."""

    def __init__(self, most: int) -> None:
        self._most, self._kept, self._lock = most, OrderedDict[str, CachedPage](), threading.Lock()

    def put(self, name: str, kept: CachedPage) -> None:
        """Keep a page, and let go of what was not looked at for the longest where there is no room for both."""
        with self._lock:
            self._kept[name] = kept
            self._kept.move_to_end(name)
            while len(self._kept) > 1 and sum(each.size for each in self._kept.values()) > self._most:
                self._kept.popitem(last=False)

    def find(self, name: str) -> CachedPage | None:
        """Find the page of a name, None where it is not kept."""
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
            return self._kept.get(name)

    def get(self, name: str) -> CachedPage:
        """Find the page of a name. Raises HTTPException where it is not kept, or no longer."""
        found = self.find(name)
        if found is None:
            raise HTTPException(404, "this page is not kept any more: trace the text again")
        return found
