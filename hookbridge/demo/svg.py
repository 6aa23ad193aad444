"""A few SVG elements, and colours that suit light and dark backgrounds."""

from __future__ import annotations

from xml.etree import ElementTree

# Plain rules rather than CSS variables, which some viewers outside browsers lack.
LAYOUT = """
text { font-family: system-ui, -apple-system, "Segoe UI", "Helvetica Neue",
       "DejaVu Sans", sans-serif; font-size: 12px; }
.title { font-size: 20px; font-weight: 600; }
.heading { font-size: 14px; font-weight: 600; }
.name { font-size: 13px; font-weight: 600; }
.small { font-size: 11px; }
.count { font-size: 10px; }
.bad { font-weight: 600; }
.line { stroke-width: 2; }
.line.fit { stroke-dasharray: 5 4; }
.lane { stroke-width: 1.5; opacity: 0.4; }
.pill { stroke-width: 1.5; }
"""
COLOURS = """
text {{ fill: {text}; }}
.muted {{ fill: {muted}; }}
.bad {{ fill: {bad}; }}
.background, .pill {{ fill: {background}; }}
.band {{ fill: {band}; }}
.rule {{ stroke: {rule}; }}
.mark.session {{ fill: {session}; }}
.mark.fit {{ fill: {fit}; }}
.line {{ fill: none; }}
.line.session, .lane.session, .pill.session {{ stroke: {session}; }}
.line.fit, .lane.fit, .pill.fit {{ stroke: {fit}; }}
"""
LIGHT = {
    "background": "#ffffff",
    "text": "#1f2328",
    "muted": "#59636e",
    "rule": "#d1d9e0",
    "band": "#f3f5f8",
    "session": "#0a58ca",
    "fit": "#c2570c",
    "bad": "#cf222e",
}
DARK = {
    "background": "#0d1117",
    "text": "#f0f6fc",
    "muted": "#9198a1",
    "rule": "#3d444d",
    "band": "#171d26",
    "session": "#6ea8fe",
    "fit": "#ffa657",
    "bad": "#ff7b72",
}


def style_sheet() -> str:
    """The picture's style: light, and dark where the reader prefers that."""
    dark = COLOURS.format(**DARK)
    light = COLOURS.format(**LIGHT)
    return f"{LAYOUT}{light}@media (prefers-color-scheme: dark) {{{dark}}}\n"


class Drawing:
    """An SVG picture under construction."""

    def __init__(self, width: int, height: int, *, title: str, description: str):
        """Starts a picture with a background.

        Args:
          width: in pixels.
          height: in pixels.
          title: what a screen reader says first.
          description: what it says next.
        """
        self._root = ElementTree.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {width} {height}",
                "width": str(width),
                "height": str(height),
                "role": "img",
                "aria-labelledby": "title description",
            },
        )
        for tag, text in (("title", title), ("desc", description)):
            name = {"title": "title", "desc": "description"}[tag]
            ElementTree.SubElement(self._root, tag, {"id": name}).text = text
        ElementTree.SubElement(self._root, "style").text = style_sheet()
        self.rect(0, 0, width, height, "background")

    def _add(self, tag: str, style: str, **attributes: object) -> ElementTree.Element:
        values = {k.replace("_", "-"): _number(v) for k, v in attributes.items()}
        return ElementTree.SubElement(self._root, tag, {"class": style, **values})

    def rect(
        self, x: float, y: float, width: float, height: float, style: str, rx: float = 0
    ) -> ElementTree.Element:
        """A rectangle with its upper left corner at (x, y)."""
        return self._add("rect", style, x=x, y=y, width=width, height=height, rx=rx)

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        """A straight line."""
        self._add("line", style, x1=x1, y1=y1, x2=x2, y2=y2)

    def polyline(self, points: list[tuple[float, float]], style: str) -> None:
        """A line through points."""
        self._add(
            "polyline", style, points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        )

    def circle(self, x: float, y: float, radius: float, style: str, tip: str) -> None:
        """A dot that says `tip` under the pointer."""
        dot = self._add("circle", f"mark {style}", cx=x, cy=y, r=radius)
        ElementTree.SubElement(dot, "title").text = tip

    def path(self, shape: str, style: str, tip: str) -> None:
        """Any shape, in SVG path syntax, that says `tip` under the pointer."""
        drawn = self._add("path", f"mark {style}", d=shape)
        ElementTree.SubElement(drawn, "title").text = tip

    def text(
        self,
        x: float,
        y: float,
        text: str,
        style: str = "",
        *,
        anchor: str = "start",
        angle: float = 0,
    ) -> None:
        """Text whose base line starts, centres or ends at (x, y)."""
        turned = {"transform": f"rotate({angle} {x:.1f} {y:.1f})"} if angle else {}
        element = self._add("text", style, x=x, y=y, text_anchor=anchor, **turned)
        element.text = text

    def pill(self, x: float, y: float, text: str, style: str, tip: str) -> None:
        """A number in a frame, centred at (x, y)."""
        width = 8 + 6.5 * len(text)
        frame = self.rect(x - width / 2, y - 7, width, 14, f"pill {style}", rx=7)
        ElementTree.SubElement(frame, "title").text = tip
        self.text(x, y + 3.5, text, "count", anchor="middle")

    def to_string(self) -> str:
        """The picture as a complete SVG document."""
        ElementTree.indent(self._root)
        return ElementTree.tostring(self._root, encoding="unicode") + "\n"


def _number(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)
