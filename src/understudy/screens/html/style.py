"""The palette and the look of badges, figures, charts and tables, for light, dark and paper."""

LIGHT = """
  --paper:#fbfbfa;--card:#ffffff;--ink:#1b2128;--soft:#55606b;--line:#dfe3e8;--grid:#e9ecef;
  --c1:#0b6bab;--c2:#c2410c;--c3:#0a7a5a;--c4:#a33d86;--c5:#8a6400;--c6:#5b5bd6;
  --problem:#b42318;--problem-bg:#fdecea;--warning:#8a5300;--warning-bg:#fdf3df;
  --note:#0b5c94;--note-bg:#e8f2fa;--good:#0a6b4c;--good-bg:#e6f5ef;
"""
"""Custom properties: what each colour is for."""
DARK = """
  --paper:#14171b;--card:#1c2026;--ink:#e8eaed;--soft:#a4afba;--line:#343b44;--grid:#2a3038;
  --c1:#6cb8ee;--c2:#f5925c;--c3:#4fcfa4;--c4:#e39acb;--c5:#dcb54a;--c6:#a5a5ff;
  --problem:#ff9c92;--problem-bg:#3a1d1b;--warning:#f2c26b;--warning-bg:#35290f;
  --note:#8cc8f5;--note-bg:#152b3d;--good:#6fd8b1;--good-bg:#12302a;
"""
PARTS = """
.badge{display:inline-block;font-size:.8rem;font-weight:600;padding:.12rem .6rem;
  border-radius:999px;vertical-align:middle}
.badge.problem{color:var(--problem);background:var(--problem-bg)}
.badge.warning{color:var(--warning);background:var(--warning-bg)}
.badge.note{color:var(--note);background:var(--note-bg)}
.badge.good{color:var(--good);background:var(--good-bg)}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.75rem;
  margin:1.5rem 0 0;padding:0}
.figures div{background:var(--card);border:1px solid var(--line);border-radius:10px;
  padding:.75rem .9rem}
.figures dt{color:var(--soft);font-size:.85rem}
.figures dd{margin:0;font-size:1.3rem;font-weight:650;line-height:1.25;
  font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.figures .under{display:block;font-size:.82rem;font-weight:400;color:var(--soft)}
.finding{background:var(--card);border:1px solid var(--line);border-left:5px solid var(--line);
  border-radius:10px;padding:.85rem 1.1rem;margin:.9rem 0}
.finding.problem{border-left-color:var(--problem)}
.finding.warning{border-left-color:var(--warning)}
.finding.note{border-left-color:var(--note)}
.finding h3{margin:.35rem 0 .2rem}
.finding ul{margin:.3rem 0;padding-left:1.2rem}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,27rem),1fr));gap:1rem;
  margin:1rem 0}
figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:10px;
  padding:.9rem 1rem .8rem;break-inside:avoid}
figcaption{font-size:.88rem;margin:.15rem 0 .4rem}
figure svg{display:block;width:100%;height:auto}
figure.wide{margin:1rem 0}
.scroll{overflow-x:auto}
figure img{display:block;width:100%;height:auto;background:#fff;border-radius:6px}
.keys{list-style:none;display:flex;flex-wrap:wrap;gap:.1rem .9rem;margin:.3rem 0 0;padding:0;
  font-size:.85rem}
.keys li::before{content:"";display:inline-block;width:1.1em;height:.25em;border-radius:2px;
  vertical-align:middle;margin-right:.35em;background:var(--c1)}
.keys .k2::before{background:var(--c2)}.keys .k3::before{background:var(--c3)}
.keys .k4::before{background:var(--c4)}.keys .k5::before{background:var(--c5)}
.keys .k6::before{background:var(--c6)}
svg text{fill:var(--soft);font:14px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
svg .grid{stroke:var(--grid);stroke-width:1}
svg .pause{stroke:var(--soft);stroke-width:1;stroke-dasharray:2 4;opacity:.6}
svg .mark{stroke:var(--soft);stroke-width:1;opacity:.55}
svg .mark-name,svg .level-name{font-size:12.5px;paint-order:stroke;stroke:var(--card);
  stroke-width:4px;stroke-linejoin:round}
svg .level{stroke:var(--ink);stroke-width:1.2;stroke-dasharray:7 4;opacity:.75}
svg .level-name{fill:var(--ink)}
svg path{fill:none;stroke-linejoin:round;stroke-linecap:round}
svg .thin{stroke-width:1;opacity:.35}
svg .thick{stroke-width:2.4}
svg .band{stroke:none;opacity:.16}
svg .s1{stroke:var(--c1)}svg .s2{stroke:var(--c2)}svg .s3{stroke:var(--c3)}
svg .s4{stroke:var(--c4)}svg .s5{stroke:var(--c5)}svg .s6{stroke:var(--c6)}
svg .f1{fill:var(--c1)}svg .f2{fill:var(--c2)}svg .f3{fill:var(--c3)}
svg .f4{fill:var(--c4)}svg .f5{fill:var(--c5)}svg .f6{fill:var(--c6)}
table{border-collapse:collapse;width:100%;font-size:.92rem;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.38rem .7rem .38rem 0;border-bottom:1px solid var(--line);
  vertical-align:top}
th{font-weight:600;color:var(--soft);white-space:nowrap}
td.number,th.number{text-align:right;white-space:nowrap}
td.line{white-space:nowrap}
td+td,th+th{padding-left:.4rem}
td{overflow-wrap:break-word}
.table{margin:.2rem 0 1.4rem;overflow-x:auto}
"""
"""Badges, key figures, findings, charts and tables."""
