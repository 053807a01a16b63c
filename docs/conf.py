"""Sphinx configuration: Markdown pages by MyST; KaTeX writes formulas as MathML at build time, without a network.

KaTeX comes with sphinxcontrib-katex and runs in V8 (mini-racer); the font of formulas comes with ziamath.
"""

import gc
import importlib.util
import json
import re
from pathlib import Path

from docutils import nodes
from py_mini_racer import JSEvalException, MiniRacer
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

project = "Discreet"
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_heading_anchors = 3


def file_of(module: str, path: str) -> Path:
    """A file next to an installed module."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"{module} is missing; install requirements-docs.lock")
    return Path(spec.origin).parent / path


html_theme = "furo"
html_title = "Discreet"
html_static_path = ["static", str(file_of("ziamath", "fonts/STIXTwoMath-Regular.ttf"))]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-dark"
html_math_renderer = "katex"

# Browsers set no space between the name of a function and its argument (log a) unless there is a bracket.
NAMED_FUNCTION = re.compile(r"<mo>\u2061</mo>(?!<m[orow>\s]*[^>]*>[(\[{])")
LOG = logging.getLogger(__name__)
gc.set_threshold(1_000_000)  # a page is many small objects: looking for garbage took a third of a build
KATEX = MiniRacer()
KATEX.eval(file_of("sphinxcontrib.katex", "katex.min.js").read_text(encoding="utf-8"))


def formula(node: nodes.Element, *, display: bool) -> str:
    """A formula as MathML; a mistake in it is a warning of the build."""
    options = {"output": "mathml", "displayMode": display, "strict": "error", "throwOnError": True}
    try:
        written = KATEX.eval(f"katex.renderToString({json.dumps(node.astext())}, {json.dumps(options)})")
        return NAMED_FUNCTION.sub(r'\g<0><mspace width="0.17em"/>', str(written))
    except JSEvalException as error:
        LOG.warning("formula: %s", str(error).splitlines()[0], location=node)
        return ""


def inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(formula(node, display=False))
    raise nodes.SkipNode


def block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own."""
    translator.body.append(f'<div class="formula">{formula(node, display=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Draw formulas with KaTeX."""
    app.add_html_math_renderer("katex", inline_renderers=(inline, None), block_renderers=(block, None))
