"""The modules of the page are joined into one script, and what cannot be joined is found at the start."""

import pytest

from discreet.serve.page.scripts import joined


def test_modules_are_joined_in_the_order_of_their_imports() -> None:
    modules = {
        "main.js": 'import * as a from "./a.js";\nimport {\n  b,\n  c as d,\n} from "./b.js";\n'
        'import t from "./t/en.js";\na.go(b, d, t);\n',
        "a.js": "// a comment\nexport function go() {}\n",
        "b.js": 'import { go } from "./a.js";\nexport const b = 1;\n/** more\n * lines */\nexport class c {}\n',
        "t/en.js": 'export default { text: "import x" };\n',
    }
    script = joined(modules)
    assert script.index("module_a =") < script.index("module_b =") < script.index("module_main =")
    assert "const { b,\n  c: d,\n } = module_b;" in script.replace("{\n  b", "{ b").replace(",\n}", ",\n }")
    assert "return { b, c };" in script
    assert "const { default: t } = module_t_en;" in script
    assert "comment" not in script
    assert "more" not in script


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
