"""The section of the page that shows the variants' answers as pictures, if there are any."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

from attnlab.lab.reporting.layout import section
from attnlab.lab.reporting.markup import Markup, name, tag
from attnlab.lab.results.outcome import Outcome


def gallery(found: Sequence[Outcome]) -> Markup | None:
    """Show the pictures of each variant below each other. Returns None if there are none."""
    drawn = [
        tag(
            "figure",
            tag("figcaption", name(outcome.name), f": {picture.caption}"),
            tag(
                "img",
                src=f"data:image/png;base64,{b64encode(picture.png).decode()}",
                alt=f"{outcome.name}: {picture.caption}",
                class_="picture",
            ),
        )
        for outcome in found
        for picture in outcome.pictures
    ]
    return section("Answers", drawn) if drawn else None
