"""Sphinx configuration: Markdown pages by MyST."""

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
