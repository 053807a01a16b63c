"""How the documentation is built: Markdown pages by Sphinx and MyST; it holds no text."""

project = "Discreet"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_heading_anchors = 3
html_theme = "alabaster"
html_theme_options = {
    "description": "Protected frequency tables from census microdata",
    "page_width": "1100px",
}
