"""The style of pages: light and dark, wide and narrow, and print. It uses system fonts and fetches nothing."""

# The variants have Okabe and Ito's colours, which differ in every common form of colour blindness. They are darker on
# white and lighter on black than the originals, so that a thin line has a contrast of at least 3:1.
LIGHT = {
    "page": "#fdfdfb", "ink": "#1b1c1e", "ink-2": "#5a5e66", "grid": "#e3e3de", "rule": "#e6e5df",
    "wash": "#f3f2ed", "map": "#0b4f8a", "less": "#a34400", "v0": "#0072b2", "v1": "#c8500a", "v2": "#00805c",
    "v3": "#a8558a", "v4": "#9a6700", "v5": "#2489bd", "v6": "#55585e", "v7": "#7a4fc4",
}  # fmt: skip
DARK = {
    "page": "#15171a", "ink": "#e9e8e4", "ink-2": "#a3a7ae", "grid": "#33373d", "rule": "#2c3035",
    "wash": "#22262b", "map": "#7cc0f5", "less": "#ff9c5e", "v0": "#5cb3ec", "v1": "#ff8f4d", "v2": "#3fc7a0",
    "v3": "#e39ac6", "v4": "#e8b53d", "v5": "#9ad4f7", "v6": "#b9bcc2", "v7": "#b898f0",
}  # fmt: skip
_RULES = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);line-height:1.55;font-size:16px;
  font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
main{max-width:72rem;margin:0 auto;padding:3.5rem 1.5rem 5rem}
h1,h2{font-family:ui-serif,"Iowan Old Style",Charter,"Palatino Linotype",Georgia,"Noto Serif",serif;
  font-weight:600}
h1{font-size:clamp(1.6rem,1.1rem + 2.2vw,2.5rem);line-height:1.2;letter-spacing:-.012em;margin:.35rem 0 0;
  max-width:24em;text-wrap:balance;overflow-wrap:anywhere}
h2{font-size:1.3rem;margin:0 0 .35rem}
h3{font-size:.95rem;font-weight:600;margin:0 0 .5rem}
.scroll+h3{margin-top:1.6rem}
section{margin-top:3.2rem}
p{margin:.4rem 0;max-width:42em;overflow-wrap:anywhere}
.eyebrow{margin:0;color:var(--ink-2);font-size:.85rem;overflow-wrap:anywhere}
.quiet{color:var(--ink-2);font-size:.875rem}
p.quiet{max-width:50em}
.name{font-weight:600}
.number{font-variant-numeric:tabular-nums;white-space:nowrap}
a{color:var(--v0)}
.banner{margin:1.5rem 0 0;padding:.7rem 1rem;border-left:3px solid var(--v1);background:var(--wash);
  max-width:none}
.answer p{margin:.3rem 0}
.said{margin:.6rem 0 1.6rem}
.said p{font-size:1.125rem;margin:.6rem 0}
.answer .strips{margin:1.4rem 0 1.5rem}

.strips{display:grid;grid-template-columns:fit-content(15rem) 1fr;column-gap:1rem}
.strip{display:grid;grid-template-columns:subgrid;grid-column:1/-1;align-items:center}
.strip-name{overflow:hidden;text-overflow:ellipsis;white-space:nowrap;font-size:.9rem}
.strip-plot{display:block;width:100%;height:2.6rem;overflow:visible}
.groups .strip-plot{height:1.6rem}
.groups .strip:not(:last-child){border-bottom:1px solid var(--rule)}
.groups .strip-name{font-size:.8125rem;color:var(--ink-2)}
.groups .name{font-weight:400}
.strip .scale{height:1.2rem}
.scale text{fill:var(--ink-2);font-size:12px;font-variant-numeric:tabular-nums}
.grid{stroke:var(--grid)}
.dot{fill:currentColor;stroke:var(--page);stroke-width:1.5}
.ring{fill:none;stroke:currentColor;stroke-width:1.2;opacity:.75}
.reach{stroke:currentColor;stroke-width:2.5;opacity:.5;stroke-linecap:round}
.groups .reach{stroke-width:1.5;opacity:.4}
.v0{color:var(--v0)}.v1{color:var(--v1)}.v2{color:var(--v2)}.v3{color:var(--v3)}
.v4{color:var(--v4)}.v5{color:var(--v5)}.v6{color:var(--v6)}.v7{color:var(--v7)}

.legend{display:flex;flex-wrap:wrap;gap:.3rem 1.3rem;margin:.7rem 0 .4rem;padding:0;list-style:none;
  font-size:.9rem}
.legend svg{width:30px;height:10px;margin-right:.5rem;vertical-align:middle;stroke:currentColor}
.legend .name{color:var(--ink);font-weight:400}

.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{text-align:right;vertical-align:top;padding:.6rem .2rem .6rem 1rem;
  border-bottom:1px solid var(--rule)}
th:first-child,td:first-child{text-align:left;padding-left:0}
thead th{font-weight:400;color:var(--ink-2);font-size:.8125rem;vertical-align:bottom;
  border-color:var(--ink-2)}
tbody th{font-weight:600;min-width:6.5rem;max-width:16rem;overflow-wrap:break-word}
td .quiet{display:block;font-size:.8rem;white-space:nowrap}
td .head{display:none}
td{white-space:nowrap}
td.state{text-align:left;color:var(--ink-2);white-space:normal}
.tight th,.tight td{padding-top:.28rem;padding-bottom:.28rem}
.tight tbody th{font-weight:400}
.answers{width:auto}
.answers tbody th{min-width:0}
.answers td.text,.answers th:last-child{text-align:left;white-space:normal;overflow-wrap:anywhere}
.facts{width:auto}
.facts th{font-weight:400;color:var(--ink-2)}
.facts td{white-space:normal;overflow-wrap:anywhere}
.facts td,.facts th{text-align:left;padding:.35rem 1.2rem .35rem 0}

.verdicts{list-style:none;margin:.6rem 0;padding:0}
.verdicts li{max-width:50em;padding:.35rem 0 .35rem 1.4rem;position:relative;overflow-wrap:anywhere}
.verdicts li::before{content:"";position:absolute;left:.1rem;top:.85rem;width:.6rem;height:.6rem;
  border-radius:50%;background:var(--of)}

.panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.2rem,1fr));gap:1rem 1.2rem}
.pair+figure,.pair~.pair,figure+.pair{margin-top:1.6rem}

.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,var(--least,22rem)),1fr));gap:1.4rem 2.2rem;
  margin-top:.8rem}
figure{margin:0;min-width:0}
figcaption{font-size:.9rem;margin-bottom:.35rem}
.costs{--least:20rem}
.pair>figure,.panels>figure{container-type:inline-size}
.curve,.scatter{display:block;width:100%;max-width:40rem;height:auto;overflow:visible}
.curve text,.scatter text{font-size:10.5px;font-size:calc(17.5px - 1.67cqw);font-variant-numeric:tabular-nums}
.shared text{font-size:10px;font-size:calc(18px - 4.4cqw)}
.scatter .label path{stroke:currentColor;opacity:.6}
.scatter .label text{fill:currentColor;font-weight:600;unicode-bidi:isolate;paint-order:stroke;stroke:var(--page);
  stroke-width:2.5px;stroke-linejoin:round}

.map-figure{margin-top:1.8rem}
.map{display:block;fill:var(--map);height:auto}
.map .less{fill:var(--less)}
.map .still{fill:none;stroke:var(--map);shape-rendering:crispEdges}
.map .still .less{fill:none;stroke:var(--less)}
.live .example .still{display:none}
.lens{flex:1 1 20rem;min-width:min(100%,20rem)}
.sliders{display:grid;grid-template-columns:auto minmax(7rem,12rem) 1fr;gap:.1rem .8rem;align-items:center;
  margin:.3rem 0 .6rem;font-size:.875rem;color:var(--ink-2)}
.sliders[hidden]{display:none}
.sliders label{display:contents}
.sliders input{width:100%;margin:0;height:1.8rem;accent-color:var(--map)}
.sliders output{color:var(--ink);font-variant-numeric:tabular-nums}
.map .frame{fill:none;stroke:var(--grid)}
.map text{fill:var(--ink);font-size:15px}
.map rect[fill-opacity]:hover{stroke:var(--ink);stroke-width:1.5}
.map-row{display:flex;flex-wrap:wrap;gap:1.4rem 2.4rem;align-items:flex-start}
.picture{max-width:100%;height:auto;background:#fff}
.heads{flex:1 1 26rem;display:grid;grid-template-columns:repeat(var(--heads),1fr);gap:.7rem .9rem;
  padding-top:1.2rem}
.heads figure{max-width:14rem}
h3+.heads{padding-top:0}
.heads svg{width:100%}
.heads figcaption{font-size:.78rem;color:var(--ink-2);margin:0 0 .15rem}
.ramp{display:flex;flex-wrap:wrap;gap:.2rem .9rem;margin:.6rem 0}
.swatch{display:inline-flex;align-items:center;gap:.3rem;font-size:.78rem;color:var(--ink-2)}
.swatch i{display:inline-block;width:14px;height:14px;
  background:color-mix(in srgb,var(--map) var(--share),transparent);outline:1px solid var(--grid)}
.reads{font-size:1rem}

details{border-top:1px solid var(--rule);padding:.65rem 0}
details:last-of-type{border-bottom:1px solid var(--rule)}
details details{margin-left:1rem}
summary{cursor:pointer;font-size:.95rem}
summary:focus-visible,.scroll:focus-visible,input:focus-visible{outline:2px solid var(--v0);outline-offset:3px}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--wash);padding:.9rem 1rem;
  border-radius:6px;font-size:.78rem;
  line-height:1.5}
code,pre{font-family:ui-monospace,"Cascadia Mono","SF Mono",Menlo,Consolas,"Noto Sans Mono",monospace}
code{font-size:.85em;overflow-wrap:anywhere}
ul.plain{list-style:none;padding:0;margin:.5rem 0}
ul.plain li{padding:.2rem 0;overflow-wrap:anywhere}
.hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
"""

_NARROW = """
@media (max-width:44rem){
  main{padding:1.6rem 1rem 3rem}
  section{margin-top:2.4rem}
  .heads{grid-template-columns:1fr 1fr}
  .strips{grid-template-columns:fit-content(6.8rem) 1fr;column-gap:.6rem}
  .strip-name{white-space:normal;overflow-wrap:anywhere;line-height:1.15}
  .results thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
  .results,.results tbody,.results tr,.results th,.results td{display:block}
  .results tr{padding:.7rem 0;border-bottom:1px solid var(--rule)}
  .results th,.results td{border:0;padding:.12rem 0;text-align:left;max-width:none}
  .results td:not(.state){display:grid;grid-template-columns:9.5rem 1fr;column-gap:.6rem}
  .results td .head{display:block;color:var(--ink-2)}
  .results td .quiet{grid-column:2}
}
"""

_PAPER = """
@media print{
  @page{margin:16mm 15mm}
  body{font-size:10.5pt;background:#fff}
  main{padding:0;max-width:none}
  section{margin-top:1.6rem}
  h2,h3,figcaption,summary,.legend,.ramp,section>p.quiet:not(:last-child){break-after:avoid}
  figure,.strip,tr,.banner,p{break-inside:avoid}
  .scroll{overflow:visible}
  table{font-size:8.5pt} thead th{font-size:7.5pt} td .quiet{font-size:7.5pt}
  th,td{padding-left:.5rem}
  pre{font-size:7pt}
  .map{max-width:100%;min-width:0!important}
  .sliders,.cells,details.screen,.live .example{display:none!important}
  .live .example .still{display:inline}
  .live .sliders+.example{display:block!important}
  .pair{grid-template-columns:1fr 1fr}
  .heads{grid-template-columns:repeat(var(--heads),1fr)}
  .results tbody{columns:2;column-gap:2.5rem}
  svg,.swatch i,.verdicts li::before{print-color-adjust:exact;-webkit-print-color-adjust:exact}
  details::details-content{content-visibility:visible;block-size:auto;opacity:1}
}
"""


def _colours(named: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in named.items())


STYLE = (
    f":root{{color-scheme:light dark;{_colours(LIGHT)}}}"
    f"@media screen and (prefers-color-scheme:dark){{:root{{{_colours(DARK)}}}}}" + _RULES + _NARROW + _PAPER
)
