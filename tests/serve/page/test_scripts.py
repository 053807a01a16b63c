"""The modules of the page are joined into two scripts, and what cannot be joined is found at the start."""

import json
import os
import re
from importlib.resources import files
from pathlib import Path

import pytest

from discreet.serve.http.app import create_app
from discreet.serve.open import TableBuilder
from discreet.serve.page import scripts
from discreet.serve.page.scripts import joined, texts_in
from tests.serve.http.conftest import running, settings_in
from tests.waiting import until


def test_vega_is_bundled_in_another_process_without_the_secrets_of_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bundler holds the interpreter's lock for seconds, in which a server could not answer."""
    made = "import json, os, sys; sys.stdout.write(json.dumps([os.getpid(), sys.argv[1], dict(os.environ)]))"
    monkeypatch.setattr(scripts, "MAKE", made)
    monkeypatch.setenv("CENSUS_SECRET", "ab" * 32)
    process, bundle, environment = json.loads(scripts._made.__wrapped__())
    assert process != os.getpid()
    assert bundle == scripts.BUNDLE
    assert "PATH" in environment
    assert "ab" * 32 not in environment.values()


def test_modules_are_joined_in_the_order_of_their_imports() -> None:
    modules = {
        "main.js": 'import * as a from "./a.js";\nimport {\n  b,\n  c as d,\n} from "./b.js";\n'
        'import t from "./t/en.js";\na.go(b, d, t);\n',
        "a.js": "// a comment\nexport function go() {}\n",
        "b.js": 'import { go } from "./a.js";\nexport const b = 1;\n/** more\n * lines */\nexport class c {}\n',
        "t/en.js": 'export default { text: "import x" };\n',
    }
    script = joined(modules)["page.js"]
    assert script.index("module_a =") < script.index("module_b =") < script.index("module_main =")
    assert "const {\nb,\nc: d,\n} = module_b;" in script, "without the indentation of its lines"
    assert "return { b, c };" in script
    assert "const { default: t } = module_t_en;" in script
    assert "comment" not in script
    assert "more" not in script


def test_no_text_of_a_module_goes_over_several_lines() -> None:
    """Joining leaves out the indentation of lines, which would change such a text."""
    folder = files("discreet.serve.page") / "files"
    modules = [one for one in folder.iterdir() if one.name.endswith(".js")]
    assert len(modules) > 40
    for script in modules:
        code = re.sub(
            r"/\*\*(.|\n)*?\*/|^\s*//.*", "", script.read_text(encoding="utf-8"), flags=re.MULTILINE
        )
        assert [line for line in code.splitlines() if line.count("`") % 2] == [], script.name


def test_comments_at_the_end_of_lines_are_left_out_and_texts_are_not() -> None:
    folder = files("discreet.serve.page") / "files"
    cut = 0
    for script in (one for one in folder.iterdir() if one.name.endswith(".js")):
        for line in script.read_text(encoding="utf-8").splitlines():
            bare = scripts._REMARK.sub("", line)
            cut += bare != line
            assert bare == line or not any(bare.count(quote) % 2 for quote in '"`'), f"{script.name}: {line}"
    assert cut > 50
    assert scripts._bare('const a = f("x; // y"); // z\n') == 'const a = f("x; // y");\n'


def test_what_is_imported_when_needed_comes_later_and_shares_the_modules_of_the_first_script() -> None:
    modules = {
        "main.js": 'import { a } from "./a.js";\nconst more = () => import("./b.js").then(({ b }) => b + a);\n',
        "a.js": "export const a = 1;\n",
        "b.js": 'import { a } from "./a.js";\nimport { c } from "./c.js";\nexport const b = a + c;\n',
        "c.js": 'export const c = 2;\nconst far = () => import("./d.js");\n',
        "d.js": "export const d = 3;\n",
    }
    first, later = (joined(modules)[name] for name in ("page.js", "later.js"))
    assert "module_b =" not in first
    assert 'import("./later.js").then((all) => all.module_b)' in first
    assert first.endswith("export { module_a, module_main };")
    assert later.startswith('import { module_a, module_main } from "./page.js";')
    assert "module_a =" not in later
    assert all(f"const module_{name} =" in later for name in "bcd")


def test_the_texts_of_a_language_are_data() -> None:
    module = '// a\nexport default {\n  "a": "1, \\"2\\"",\n\n  // more\n  "b": "",\n};\n'
    assert texts_in(module) == {"a": '1, "2"', "b": ""}


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (
            {"main.js": 'import { a } from "./a.js";\n', "a.js": 'import { b } from "./main.js";\n'},
            "each other",
        ),
        ({"main.js": "export { a };\n"}, "cannot be joined"),
    ],
)
def test_what_cannot_be_joined_is_refused(modules: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        joined(modules)


def test_the_script_of_charts_is_made_after_the_start_without_a_request(
    builder: TableBuilder, tmp_path: Path
) -> None:
    scripts._made.cache_clear()
    with running(create_app(builder, settings_in(tmp_path), charts=True)):
        until(lambda: scripts._made.cache_info().currsize == 1)
    assert b"vegaEmbed" in scripts.vega_bundle()
    assert scripts._made.cache_info().misses == 1


def test_what_makes_the_script_is_not_reached_by_the_signals_of_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scripts, "MAKE", "import os; print(os.getsid(0) == os.getpid())")
    scripts._made.cache_clear()
    try:
        assert scripts.vega_bundle() == b"True\n"
    finally:
        scripts._made.cache_clear()
