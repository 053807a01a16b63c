"""Kernels that are compiled on their first call, and run by Python with the same results."""

import subprocess
import sys
from typing import Any

import numpy as np

from discreet.lazy import Kernel, njit
from discreet.maths import reproducible
from discreet.maths.noise import ptable_solver


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
        "slow = {'numba', 'flint', 'scipy', 'pyarrow', 'cryptography', 'duckdb'} & set(sys.modules)\n"
        "assert not slow, slow"
    )
    command = [sys.executable, "-c", program, "risk", "bound", "--D", "5", "--V", "2", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert '"D": 5' in done.stdout


def test_the_library_protects_without_statistics() -> None:
    """scipy.stats and scipy.optimize cost a CPU second; only inference uses them."""
    program = (
        "import sys, discreet; discreet.protect\n"
        "slow = {'numba', 'scipy.stats', 'scipy.optimize', 'duckdb'} & set(sys.modules)\n"
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


def test_a_few_numbers_have_the_bits_of_the_kernels() -> None:
    rng = np.random.default_rng(5)
    high, low = reproducible._log_table()
    for trial in range(50):
        values = np.exp(rng.normal(size=16) * 10.0 ** rng.integers(-9, 3))
        values[:5] = [1.0, 0.5, 0.0, -1.0, np.inf if trial % 2 else np.nan]
        out = np.empty(16)
        reproducible._logarithms(values, high, low, out)
        few = reproducible._few_logarithms(values, high, low)
        assert few.tobytes() == out.tobytes()
        matrix, other = rng.normal(size=(7, 11)), rng.normal(size=(11, 5))
        matrix[rng.random(matrix.shape) < 0.3] = 0.0
        product = np.zeros((7, 5))
        reproducible._multiply(matrix, other, product, True)
        assert reproducible.product(matrix, other).tobytes() == product.tobytes()
        square = rng.normal(size=(9, 9))
        square[rng.random(square.shape) < 0.4] = 0.0
        one = np.hstack([square, np.eye(9)])
        two = one.copy()
        assert reproducible._eliminate_few(one) == reproducible._eliminate(two)
        assert one.tobytes() == two.tobytes()
        value, change = np.abs(rng.normal(size=9)), rng.normal(size=9)
        assert ptable_solver._shortest_of_few(value, change) == ptable_solver._shortest(value, change)


def test_a_kernel_needs_no_blas() -> None:
    """Numba would import SciPy's linear algebra before its first kernel, which takes as long as Numba itself."""
    program = (
        "import sys\n"
        "from discreet.maths.cells.counting import nodes_along\n"
        "import numpy as np\n"
        "assert nodes_along(np.arange(3), (3,)).tolist() == [[0, 1, 2]]\n"
        "assert 'numba' in sys.modules and 'scipy.linalg' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
