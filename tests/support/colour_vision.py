"""Colours as eyes of several kinds see them, and how far apart they then are.

The matrices are those of Machado, Oliveira and Fernandes 2009, "A Physiologically-based Model for Simulation of Color
Vision Deficiency", at severity 1.0, on linear sRGB; the difference is CIEDE2000 (Sharma, Wu and Dalal 2005, "The
CIEDE2000 Color-Difference Formula", whose test data tests/display/test_colours.py holds it against).
"""

from typing import Any

import numpy as np

# From linear sRGB to XYZ (IEC 61966-2-1), whose rows sum to the white of it.
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
SIGHT = {
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def srgb_to_cielab(rgb: Any) -> Any:
    """Convert sRGB colours in [0, 1], (..., 3), to CIELAB (CIE 1976)."""
    values = np.asarray(rgb, dtype=float)
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    parts = linear @ XYZ.T / XYZ.sum(1)
    roots = np.where(parts > 216 / 24389, np.cbrt(parts), (24389 / 27 * parts + 16) / 116)
    x, y, z = np.moveaxis(roots, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], -1)


def seen(rgb: Any, sight: str) -> Any:
    """sRGB colours (..., 3) as one kind of sight has them, in CIELAB."""
    rgb = np.asarray(rgb, dtype=float)
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(linear @ np.array(SIGHT[sight]).T, 0, 1)
    return srgb_to_cielab(np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055))


def difference(one: Any, other: Any) -> Any:
    """CIEDE2000 between colours in CIELAB (..., 3)."""
    (l1, a1, b1), (l2, a2, b2) = (np.moveaxis(np.asarray(each, dtype=float), -1, 0) for each in (one, other))
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    more = 1 + 0.5 * (1 - np.sqrt(mean**7 / (mean**7 + 25.0**7)))
    a1, a2 = more * a1, more * a2
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    grey = c1 * c2 == 0
    turn = np.where(grey, 0, (h2 - h1 + 180) % 360 - 180)
    hue = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn) / 2)
    light, chroma, both = (l1 + l2) / 2, (c1 + c2) / 2, h1 + h2
    middle = np.where(grey, both, np.where(abs(h1 - h2) <= 180, both / 2, (both + np.where(both < 360, 360, -360)) / 2))
    t = (
        1
        - 0.17 * _cos(middle - 30)
        + 0.24 * _cos(2 * middle)
        + 0.32 * _cos(3 * middle + 6)
        - 0.2 * _cos(4 * middle - 63)
    )
    sl = 1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2)
    sc, sh = 1 + 0.045 * chroma, 1 + 0.015 * chroma * t
    angle = 60 * np.exp(-(((middle - 275) / 25) ** 2))
    rotation = -2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7)) * np.sin(np.radians(angle))
    dl, dc, dh = (l2 - l1) / sl, (c2 - c1) / sc, hue / sh
    return np.sqrt(dl**2 + dc**2 + dh**2 + rotation * dc * dh)


def _cos(degrees: Any) -> Any:
    return np.cos(np.radians(degrees))
