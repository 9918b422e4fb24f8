"""report: one self-contained HTML page, its pictures as PNG files, and the SQLite summary, from files of rows. Of a
document (.md) it fills the marked regions with tables instead, from the files that the marks name."""

import base64
import html
import io
import os

from . import document, findings, rows, summary
from .programs import UsageError

HELP = "a page of figures and tables from rows, or the tables of a document"

STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:1060px;margin:2em auto;padding:0 1em;color:#222}
h1{font-size:1.6em}h2{font-size:1.2em;margin-top:2em;border-bottom:1px solid #ddd;padding-bottom:.2em}
table{border-collapse:collapse;font-size:13px;margin:1em 0;display:block;overflow-x:auto}
td,th{padding:.25em .7em;border-bottom:1px solid #eee;text-align:right;white-space:nowrap}
td:first-child,th:first-child{text-align:left}th{background:#f6f6f6;white-space:normal;vertical-align:bottom}
img{max-width:100%}figcaption,.note{color:#666;font-size:13px}figure{margin:1em 0}li{margin:.35em 0}"""


def add_options(parser):
    parser.add_argument("rows", nargs="+", metavar="FILE", help="files that slate-bench wrote; or documents, *.md")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a document is not what its files say"
    )
    parser.add_argument(
        "--out", default="slate-bench-report", help="folder for the page and its pictures (%(default)s)"
    )


class Page:
    """Grows section by section; pictures go into the page and beside it."""

    def __init__(self, folder, title):
        self.folder = folder
        self.parts = [
            "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
            "<title>%s</title><style>%s</style><h1>%s</h1>" % (html.escape(title), STYLE, html.escape(title)),
        ]

    def section(self, title, note=""):
        self.parts.append("<h2>%s</h2>" % html.escape(title))
        if note:
            self.parts.append("<p class=note>%s</p>" % html.escape(note))

    def sentences(self, sentences):
        self.parts.append("<ul>%s</ul>" % "".join("<li>%s</li>" % html.escape(each) for each in sentences))

    def table(self, table):
        if not table:
            self.parts.append("<p class=note>Not measured.</p>")
            return
        heading, lines = table
        self.parts.append(
            "<table><tr>%s</tr>%s</table>"
            % (cells("th", heading), "".join("<tr>%s</tr>" % cells("td", line) for line in lines))
        )

    def figure(self, name, figure, caption):
        import matplotlib.pyplot as plt

        if figure is None:
            self.parts.append("<p class=note>%s: not measured.</p>" % html.escape(caption))
            return
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", bbox_inches="tight")
        plt.close(figure)
        with open(os.path.join(self.folder, name + ".png"), "wb") as file:
            file.write(buffer.getvalue())
        self.parts.append(
            "<figure><img alt='%s' src='data:image/png;base64,%s'><figcaption>%s</figcaption></figure>"
            % (html.escape(name), base64.b64encode(buffer.getvalue()).decode(), html.escape(caption))
        )

    def write(self):
        path = os.path.join(self.folder, "report.html")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(self.parts) + "</html>\n")
        return path


def cells(kind, values):
    return "".join("<%s>%s</%s>" % (kind, html.escape(str(value)), kind) for value in values)


def provenance(found):
    """Where the rows come from, a sentence a machine and commit."""
    seen = dict.fromkeys(
        (
            row["machine"]["gpu"] or row["device"],
            row["machine"]["driver"] or "none",
            row["machine"]["processor"],
            row["machine"]["cpus"],
            row["commit"],
        )
        for row in found
    )
    dates = sorted(row["time"][:10] for row in found)
    clocks = sorted(row["clocks"]["sm_mhz"] for row in found if row["clocks"] and row["clocks"]["sm_mhz"])
    sentences = ["%s, driver %s, %s with %d processors; slate at commit %s." % each for each in seen]
    sentences.append(
        "%s of %s, %s."
        % (
            findings.counted(len(found), "row"),
            findings.counted(len({row["run"] for row in found}), "run"),
            " to ".join(sorted({dates[0], dates[-1]})),
        )
    )
    if clocks:
        sentences.append(
            "The GPU's SM clock at the rows: %d to %d MHz, median %d."
            % (clocks[0], clocks[-1], clocks[len(clocks) // 2])
        )
    return sentences


def papers_programs():
    from .programs import read_list

    return {name for name, program in read_list(True).items() if program.paper}


def build(found, folder):
    """Writes everything into the folder: the page's path."""
    from . import figures, tables

    os.makedirs(folder, exist_ok=True)
    page = Page(folder, "slate-bench")
    best = summary.best_pairs(found)
    ours = summary.SLATE if any(name == summary.SLATE for _, name in best) else next((name for _, name in best), None)
    page.sentences(provenance(found))
    page.section("What came out")
    page.sentences(findings.about_pairs(best) + findings.about_solos(found) + findings.about_mixes(found))
    add_pairs(page, figures, tables, best, ours)
    add_alone(page, figures, tables, found, best)
    page.section("Arrivals over time")
    page.figure("mix", figures.figure_mix(found), "Programs that arrive over time, start-up included")
    page.table(tables.mix_table(found))
    page.section(
        "Shares",
        "Equal programs should end together, and so should programs whose work is as their weight: 1 is right.",
    )
    page.table(tables.fairness_table(found))
    page.section("Memory beyond the card", "Programs that have more memory than slate's part of the device.")
    page.table(tables.memory_table(found))
    page.section(
        "Arrangements", "Times over one after the other under slate; reached: the best arrangement's over slate's own."
    )
    page.table(tables.arrangement_table(found))
    page.section("Not measured, and failed")
    page.sentences(findings.about_gaps(found))
    summary.write_sqlite(found, os.path.join(folder, "summary.sqlite"))
    return page.write()


def add_pairs(page, figures, tables, best, ours):
    page.section(
        "The paper's pairs (Figure 7)",
        "Gain is the sum of the native times alone over the time together, both of the "
        "same run. Configurations with several splits show the best one, which is known only afterwards.",
    )
    page.figure(
        "figure-7", figures.figure_7(best, papers_programs()), "The 15 pairs of the Slate paper; below 1 is a gain"
    )
    page.section("All pairs")
    page.figure(
        "ratios",
        figures.figure_ratios(best, ours),
        "%s against its rivals, each pair a point; below 1 is a loss" % ours,
    )
    page.figure(
        "heat-map", figures.heat_map(best, ours), "%s: gain over one after the other natively; red is a loss" % ours
    )
    page.figure("heat-map-mps", figures.heat_map(best, ours, "mps"), "%s over MPS; red is a loss" % ours)
    page.figure(
        "heat-map-static",
        figures.heat_map(best, ours, "static"),
        "%s over the best static partition; red is a loss" % ours,
    )
    page.table(tables.metric_table(best))
    page.table(tables.pair_table(best))
    page.section("black_scholes beside quasi_random (Table IV)")
    page.table(tables.table_4(best))


def add_alone(page, figures, tables, found, best):
    page.section(
        "What the programs are (Table II)",
        "FLOPs and bytes are counted by slate's profile form: bytes that the kernel "
        "asks for, of which the caches may serve some. The paper's counters came from a profiler.",
    )
    page.table(tables.table_2(found))
    page.section(
        "Gaussian elimination (Table III)", "The paper's IPC and stalls need a profiler's privileges; times are here."
    )
    page.table(tables.table_3(found))
    page.section(
        "Alone (Table V)", "Medians of ratios to the native times of the same run. Applications include start-up."
    )
    page.table(tables.table_5(found))
    page.section("Where the time goes (Figure 6)", "docs/benchmarking.md defines the parts.")
    page.figure("figure-6", figures.figure_6(found), "Application time alone, in parts")
    page.table(tables.overhead_table(found))
    page.section("Settings of the worker form (Figures 1 and 5)")
    page.figure("figure-1", figures.figure_1(found), "Figure 1: speed by SMs")
    page.figure("figure-5", figures.figure_5(found), "Figure 5: kernel time by task size")
    page.figure("workers", figures.figure_workers(found), "Speed by workers an SM")


def run(arguments):
    documents = [path for path in arguments.rows if path.endswith(".md")]
    if documents == arguments.rows:
        return max(document.run(path, arguments.check) for path in documents)
    if documents or arguments.check:
        raise UsageError("documents (*.md) and files of rows go apart, and --check is for documents")
    return write_page(arguments)


def write_page(arguments):
    try:
        found = rows.read(arguments.rows)
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from error
    if not found:
        raise UsageError("no rows in %s" % ", ".join(arguments.rows))
    try:
        path = build(found, arguments.out)
    except ImportError as error:
        raise UsageError("the report needs matplotlib (python3-matplotlib): %s" % error) from error
    print(path)
    return 0
