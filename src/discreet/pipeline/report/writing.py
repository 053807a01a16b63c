"""The files of a report: both pages, and every chart as SVG and PNG; it owns their names, not what they say."""

from __future__ import annotations

from discreet.page.skeleton import Page
from discreet.pipeline.progress import Progress
from discreet.swap.whole_folder import WholeFolder

AUDIT_PAGE, PUBLIC_PAGE = "audit.html", "public.html"
CHARTS, PUBLIC_CHARTS = "charts", "public-charts"


def write_pages(folder: WholeFolder, confidential: Page, public: Page, progress: Progress) -> None:
    """Write both pages and their charts; the charts of the public page have a folder of their own."""
    pages = ((AUDIT_PAGE, CHARTS, confidential), (PUBLIC_PAGE, PUBLIC_CHARTS, public))
    progress.stage("drawing the report", sum(1 + len(page.charts) for _, _, page in pages))
    for name, charts, page in pages:
        with folder.file(name) as file:
            file.write(page.html().encode())
        progress.step()
        for chart in page.charts:
            with folder.file(f"{charts}/{chart.name}.svg") as file:
                file.write(chart.svg().encode())
            with folder.file(f"{charts}/{chart.name}.png") as file:
                file.write(chart.png())
            progress.step()
