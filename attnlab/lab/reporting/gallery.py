"""The section of the page that shows what each variant answered, where that is something to look at."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

from attnlab.lab.reporting.layout import section
from attnlab.lab.reporting.markup import Markup, name, tag
from attnlab.lab.results.outcome import Outcome


def gallery(found: Sequence[Outcome]) -> Markup | None:
    """The pictures of each variant, one below the other; None where there are none."""
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
    return section("What it answers", drawn) if drawn else None
