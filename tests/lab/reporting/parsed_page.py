"""A parsed page for tests, and a name that would break the markup if it were not escaped."""

from html.parser import HTMLParser

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202e]]>&amp;{}${7*7}</style></title>"


class Page(HTMLParser):
    """Parses a page into its tags with their attributes and the text between them."""

    def __init__(self, text: str):
        super().__init__()
        self.source, self.tags, self.words = text, [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())
