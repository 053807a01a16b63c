"""Kernels that are compiled on their first call, and run by Python with the same results."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.lazy import Kernel, njit


@njit()
def _twice(value: Any) -> Any:
    return 2 * value


@njit()
def _four_times(value: Any) -> Any:
    return _twice(_twice(value))


def test_a_kernel_calls_another_compiled_or_interpreted() -> None:
    assert isinstance(_four_times, Kernel)
    assert "compiled" not in vars(_twice)
    assert _four_times.interpreted(np.arange(3)).tolist() == [0, 4, 8]
    assert "compiled" not in vars(_twice)
    assert _four_times(3) == 12
    assert _four_times.compiled.signatures  # machine code was made, also of the kernel that it calls
    assert _twice.compiled.signatures


def test_formulas_and_help_do_without_numba() -> None:
    program = (
        "import sys; from discreet.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "slow = {'numba', 'flint', 'scipy', 'pyarrow', 'cryptography', 'duckdb', 'pydantic', 'rich', 'numpy.ma'}\n"
        "slow &= set(sys.modules)\n"
        "assert not slow, slow"
    )
    command = [sys.executable, "-c", program, "risk", "bound", "--D", "5", "--V", "2", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert '"D": 5' in done.stdout


def test_the_library_protects_without_statistics() -> None:
    """SciPy and inference cost as much as all else; Arrow's functions as much as Arrow, and files do without them."""
    program = (
        "import sys, discreet; discreet.protect\n"
        "slow = {'numba', 'scipy', 'pandas', 'pyarrow.compute', 'numpy.ma', 'duckdb', 'rich', 'altair'}\n"
        "slow |= {'discreet.inference', 'discreet.release.hierarchy', 'discreet.hierarchy.estimate'}\n"
        "slow &= set(sys.modules)\n"
        "assert not slow, slow"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_judging_starts_without_statistics_and_charts() -> None:
    """SciPy and Altair cost as much as all other imports of these commands, and are used by some measures only."""
    program = (
        "import sys\n"
        "import discreet.cli.advise, discreet.cli.attack, discreet.cli.audit, discreet.cli.utility\n"
        "slow = {'numba', 'scipy', 'altair', 'vl_convert', 'duckdb'} & set(sys.modules)\n"
        "assert not slow, slow"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_census_is_protected_and_judged_without_what_its_programme_does_not_use(tmp_path: Path) -> None:
    """Each of these takes one to eight hundredths of all imports, and more with what it imports itself."""
    anywhere = {
        "pyarrow.compute",
        "pyarrow.dataset",
        "discreet.io.ptable_files",
        "discreet.programme.strategy",
    }
    protecting = {"discreet.perturb.private", "discreet.programme.facts", "discreet.release.certificate"}
    comparing = {"discreet.release.hierarchy", "numpy.f2py.crackfortran"}
    advising = {
        "discreet.advise.curves",
        "discreet.advise.swap",
        "discreet.synth",
        "discreet.page",
        "tomlkit",
    }
    census, secret, out = (str(tmp_path / name) for name in ("census/programme.toml", "key", "release"))
    (tmp_path / "key").write_text("11" * 32)
    (tmp_path / "key").chmod(0o600)
    for unused, words in (
        (set(), ["synth", "--persons", "500", "--out", str(tmp_path / "census")]),
        (anywhere | protecting, ["protect", census, "--secret", secret, "--out", out]),
        (anywhere | comparing, ["utility", out, "--programme", census, "--secret", secret]),
        (anywhere | advising | {"numpy.f2py.crackfortran"}, ["advise", census]),
    ):
        program = (
            "import sys, importlib.metadata; from discreet.cli.app import main\n"
            f"if {words[0]!r} == 'protect':\n"
            "    importlib.metadata.entry_points = None  # nor are plugins of pydantic looked for\n"
            "try: main()\n"
            "except SystemExit: pass\n"
            f"assert not {unused!r} & set(sys.modules), {unused!r} & set(sys.modules)"
        )
        command = [sys.executable, "-c", program, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "release" / "manifest.json").exists()


def test_numpy_still_has_its_reader_of_fortran() -> None:
    program = (
        "import sys, numpy\n"
        "from discreet.lazy import lazily\n"
        "assert lazily('scipy.special').erf(0.0) == 0 and 'numpy.f2py' not in sys.modules\n"
        "assert numpy.f2py.get_include() and 'numpy.f2py' in sys.modules\n"
        "from numpy import f2py\n"
        "assert f2py is sys.modules['numpy.f2py']\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_kernel_may_be_inlined() -> None:
    """SipHash takes a third of the time where Numba inlines it, and vector instructions hash several words at once."""
    program = (
        "import numpy as np\n"
        "from discreet.maths.cells import keys\n"
        "keys.hash_words(keys.hash_key(bytes(32), 'test'), np.arange(3))\n"
        "assert not keys.hash_word.compiled.signatures\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_commands_do_without_pandas_until_a_data_frame_is_requested() -> None:
    program = (
        "import sys\n"
        "from discreet.cli.group import built\n"
        "built('protect', 'protect')\n"
        "import pyarrow as pa\n"
        "assert pa.array([1, 2]).to_numpy().tolist() == [1, 2] and 'pandas' not in sys.modules\n"
        "assert pa.table({'a': [1]}).to_pandas()['a'].tolist() == [1] and 'pandas' in sys.modules\n"
        "import pandas as pd\n"
        "assert pa.array(pd.Series(['x'], dtype='category')).type == pa.dictionary(pa.int8(), pa.large_string())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_kernel_needs_no_blas() -> None:
    """Numba would import SciPy's linear algebra before its first kernel, which takes as long as Numba itself."""
    program = (
        "import sys\n"
        "from discreet.lazy import njit\n"
        "@njit()\n"
        "def twice(number):\n"
        "    return 2 * number\n"
        "assert twice(3) == 6\n"
        "assert 'numba' in sys.modules and 'scipy.linalg' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_standalone_kernel_that_was_stored_needs_no_numba() -> None:
    program = (
        "import sys\n"
        "from discreet.maths.cells.counting import nodes_along\n"
        "import numpy as np\n"
        "assert nodes_along(np.arange(3), (3,)).tolist() == [[0, 1, 2]]\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program.replace("assert 'numba' not in", "'numba' in")], check=True)
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(("leave_out", "is_quiet"), [("discreet.lazy.leave_out", True), ("gc.freeze", False)])
def test_what_is_left_out_does_not_complain_at_the_end(leave_out: str, is_quiet: bool) -> None:
    """DuckDB's binding does, of objects that are never looked at; so a server over one of its databases would."""
    program = f"import gc, duckdb, discreet.lazy\nduckdb.connect().execute('SELECT 1')\n{leave_out}()"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ("leaked" not in found.stderr) is is_quiet
