"""bilogp as part of a process: what importing costs, threads, forks, shutdown, sub-interpreters."""

from __future__ import annotations

import importlib.util
import itertools
import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import bilogp
import canon

X = np.linspace(-3, 3, 40, dtype=np.float32).reshape(4, 10)
T = np.array([0, 3, 5, 9])


def python(code, **environment):
    """Runs code in a new interpreter: what it printed. It must succeed and say nothing on standard error."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_import_brings_nothing_large():
    loaded = python("import bilogp, sys; print([m for m in sys.modules if m.partition('.')[0] in "
                    "('numpy', 'torch', 'jax', 'rich', 'tqdm', 'cupy', 'logging')])")  # fmt: skip
    assert loaded.strip() == "[]"


def test_threads_at_once():
    expected = bilogp.logp(X, T)
    differing = []

    def work():
        for _ in range(300):
            if not canon.same_bits(bilogp.logp(X, T), expected):
                differing.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not differing


def test_other_threads_run_during_a_call():
    """The GIL is released: a thread counts on while calls are under way, most of whose time is work."""
    logits = np.zeros((2000, 20000), np.float32)
    ids = np.zeros(2000, int)
    bilogp.logp(logits, ids)
    counted, done = [0], threading.Event()

    def count():
        while not done.wait(0.0005):
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    calls, deadline = 0, time.monotonic() + 30
    while counted[0] < 20 and time.monotonic() < deadline:
        bilogp.logp(logits, ids)
        calls += 1
    done.set()
    thread.join()
    assert counted[0] >= 20
    # Threads take turns at the GIL every 5 ms at best: were it held, no more than one count a call could be made.
    assert calls < 200


def test_fork_after_use():
    """As a data loader's workers: children score, on all threads, after their parent did."""
    python(
        """
        import os, numpy as np, bilogp
        x = np.linspace(-3, 3, 400 * 20000, dtype=np.float32).reshape(400, 20000)
        t = np.arange(400)
        expected = bilogp.logp(x, t).tobytes()
        children = []
        for _ in range(3):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    code = 0 if bilogp.logp(x, t).tobytes() == expected else 2
                finally:
                    os._exit(code)
            children.append(child)
        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    """,
        PYTHONWARNINGS="ignore::DeprecationWarning",
    )  # newer Pythons warn of any fork of several threads


INTERPRETERS = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
OTHERS = [name for name in ("torch", "jax", "llvmlite", "triton") if importlib.util.find_spec(name)]
PAIRS = [pair for other in OTHERS for pair in itertools.permutations(["bilogp", other])]
WHOLE = [("bilogp", *OTHERS), (*OTHERS, "bilogp"), (*OTHERS[::-1], "bilogp"), (*OTHERS[:2], "bilogp", *OTHERS[2:])]
ORDERS = sorted({*PAIRS, *WHOLE})


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_shutdown_is_silent(order):
    imports = "\n".join(f"import {name}" for name in order)
    python(f"{imports}\nimport numpy as np\nbilogp.logp(np.zeros((2, 8), np.float32), np.array([1, 2]))")


def test_shutdown_with_a_thread_at_work():
    python("""
        import threading, bilogp, numpy as np
        def work():
            while True:
                bilogp.logp(np.zeros((2, 8), np.float32), np.array([1, 2]))
        threading.Thread(target=work, daemon=True).start()
        import time; time.sleep(0.3)
    """)


def test_compiling_shows_nothing_without_a_terminal(tmp_path):
    python("import bilogp, numpy as np; bilogp.logp(np.zeros((2, 8), np.float32), np.array([1, 2]))",
           BILOGP_CACHE_DIR=str(tmp_path))  # fmt: skip


def test_long_compiles_show_progress(monkeypatch, capsys):
    from bilogp import _progress

    monkeypatch.setattr(_progress, "is_wanted", lambda: True)
    monkeypatch.setattr(_progress, "DELAY", 0.01)
    watch = _progress.watch("logp_forward float32")
    threading.Event().wait(0.3)
    watch.close()
    assert "compiling logp_forward float32" in capsys.readouterr().err
    watch = _progress.watch("quick")
    watch.close()
    assert "quick" not in capsys.readouterr().err


def test_sub_interpreters_are_refused_in_one_sentence():
    pytest.importorskip(INTERPRETERS)
    answer = python(f"""
        import {INTERPRETERS} as interpreters
        one = interpreters.create()
        interpreters.run_string(one, "try: import bilogp\\nexcept ImportError as error: print(error, flush=True)")
    """)
    assert "bilogp cannot be imported in a sub-interpreter; import it in" in answer and answer.count("\n") == 1


def test_free_threaded_builds_are_refused_in_one_sentence():
    """Told by their flags, before an extension is looked for that they could not load."""
    answer = python("""
        import sys
        sys.abiflags = "t"
        try:
            import bilogp
        except ImportError as error:
            print(error, "bilogp._core" in sys.modules)
    """)
    assert "bilogp does not serve free-threaded builds" in answer and "use the build with a GIL" in answer
    assert answer.count("\n") == 1 and answer.strip().endswith("False")
