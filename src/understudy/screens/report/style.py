"""The style of the report: one column of text, cards and charts; light, dark, phone and paper."""

from understudy.screens.html.style import DARK, LIGHT, PARTS

_TEXT = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);
  font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif}
main,header,footer{max-width:68rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:2.5rem}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .25rem;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:1.3rem;margin:2.75rem 0 .4rem;padding-top:1.1rem;border-top:1px solid var(--line)}
h3{font-size:1rem;margin:0 0 .15rem}
p{margin:.4rem 0;max-width:46rem}
.soft,figcaption,.explains{color:var(--soft)}
.explains{font-size:.95rem}
.made{color:var(--soft);margin:0 0 1.25rem}
.lead{font-size:1.08rem;max-width:48rem}
.lead p{max-width:none;margin:.55rem 0}
code{font:.9em/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--grid);
  padding:.08em .35em;border-radius:4px;overflow-wrap:anywhere}
nav ul{list-style:none;padding:0;margin:1rem 0 0;display:flex;flex-wrap:wrap;gap:.3rem 1rem}
a{color:var(--c1)}
"""
_NARROW = """
dl.words{display:grid;grid-template-columns:minmax(8rem,max-content) 1fr;gap:.3rem 1.2rem;
  font-size:.95rem;max-width:52rem}
dl.words dt{font-weight:600}
dl.words dd{margin:0;color:var(--soft)}
footer{padding:2.5rem 1.25rem 3rem;color:var(--soft);font-size:.9rem}
@media (max-width:40rem){
  header{padding-top:1.5rem}
  h1{font-size:1.5rem}
  figure.wide img{width:760px;max-width:none}
  .figures{grid-template-columns:1fr 1fr}
  dl.words{grid-template-columns:1fr}
  dl.words dd{margin-bottom:.5rem}
}
"""
_PAPER = """
  :root{--paper:#fff;--card:#fff;--ink:#000;--soft:#444;--line:#bbb;--grid:#ddd}
  body{font-size:11pt}
  nav{display:none}
  .charts{grid-template-columns:1fr 1fr}
  h2,h3,figcaption{break-after:avoid}
  tr,.finding,figure{break-inside:avoid}
  .scroll,.table{overflow:visible}
"""
STYLE = (
    f":root{{{LIGHT}}}@media (prefers-color-scheme:dark){{:root{{{DARK}}}}}"
    f"{_TEXT}{PARTS}{_NARROW}@media print{{:root{{{LIGHT}}}{_PAPER}}}"
)
