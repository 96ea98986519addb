# ruff: noqa: E501 - each script on one line
"""Scripts that a warm start must run as a cold one does: each is (words after `python`, files of its folder)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    source: str
    words: str = "t.py"
    files: dict[str, str] = field(default_factory=dict)
    launch: str = "warm"
    """What the second start must be; cold: it must fall back."""


def plain(source: str, *, words: str = "t.py", launch: str = "warm", **files: str) -> Script:
    named = {name.replace("__", "/") + ".py": text for name, text in files.items()}
    return Script(source=source, words=words, files=named, launch=launch)


SCRIPTS: dict[str, Script] = {
    "arguments": plain("import sys; print(sys.argv)", words="t.py --lr 0.1 'a b' --flag"),
    "interpreter": plain(
        "import sys; print(sys.executable, sys.orig_argv[1:], sys.flags, sys.path, sys.prefix, sys.getrecursionlimit())"
    ),
    "main_module": plain(
        "import sys; print(__name__, __file__, __doc__, __package__, __spec__, type(__loader__), __cached__, "
        "sorted(globals()), __annotations__, sys.modules['__main__'].__dict__ is globals())"
    ),
    "main_guard": plain("def main():\n    print('ran')\n\nif __name__ == '__main__':\n    main()\n"),
    "environment": plain("import os\nfor name in sorted(os.environ): print(name, os.environ[name])"),
    "environment_of_children": plain("import subprocess; print(subprocess.run(['env'], capture_output=True).returncode)"),
    "working_directory": plain("import os; print(os.getcwd()); os.chdir('/'); print(os.getcwd())"),
    "files": plain("open('made.txt', 'w').write('x'); import os; os.makedirs('d/e'); open('d/e/f', 'w').write('y')"),
    "open_files": plain("import os; print(sorted(os.listdir('/proc/self/fd')), os.readlink('/proc/self/fd/0'))"),
    "standard_input": plain("import sys; print(repr(sys.stdin.read()))"),
    "streams": plain(
        "import sys\nfor s in (sys.stdin, sys.stdout, sys.stderr): print(s.encoding, s.errors, s.line_buffering, s.name)\n"
        "print(sys.stdout.write_through); print('äöü €'); print('err', file=sys.stderr)"
    ),
    "exception": plain("def f():\n    return 1 / 0\n\nf()\n"),
    "chained_exception": plain("try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e\n"),
    "syntax_error": plain("x = (\n"),
    "import_error": plain("import no_such_module_at_all"),
    "exit_code": plain("import sys; print('bye'); sys.exit(3)"),
    "exit_text": plain("import sys; sys.exit('a reason')"),
    "exit_none": plain("raise SystemExit"),
    "hard_exit": plain("import os, sys; sys.stdout.write('kept'); os._exit(5)"),
    "killed_by_itself": plain("import os, signal; print('now'); os.kill(os.getpid(), signal.SIGKILL)"),
    "interrupt": plain("import atexit; atexit.register(print, 'at exit'); raise KeyboardInterrupt"),
    "broken_pipe": plain("import signal; print(signal.getsignal(signal.SIGPIPE), signal.getsignal(signal.SIGINT))"),
    "signal_handler": plain(
        "import os, signal\nsignal.signal(signal.SIGUSR1, lambda *a: print('got it'))\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\nprint(signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
    ),
    "signal_state": plain(
        "lines = open('/proc/self/status').read().splitlines()\n"
        "print([l for l in lines if l.startswith(('SigBlk', 'SigIgn', 'SigCgt', 'Name', 'Threads'))])"
    ),
    "sessions": plain("import os; print(os.getpid() == os.getpgrp() == os.getsid(0), oct(os.umask(0)))"),
    "at_exit": plain("import atexit\nfor i in range(3): atexit.register(print, i)\nprint('end')"),
    "excepthook": plain("import sys\nsys.excepthook = lambda *a: print('mine', a[0].__name__)\n1 / 0"),
    "threads": plain(
        "import threading, time\nprint(threading.active_count(), threading.current_thread().name)\n"
        "threading.Thread(target=lambda: (time.sleep(0.05), print('late'))).start()\nprint('main ends')"
    ),
    "exception_in_thread": plain("import threading\nt = threading.Thread(target=lambda: 1/0, name='w'); t.start(); t.join()"),
    "logging": plain(
        "import logging; print(logging.root.handlers, logging.root.level)\n"
        "logging.basicConfig(level=logging.INFO, format='%(name)s %(message)s'); logging.info('hello')"
    ),
    "warnings": plain("import numpy, warnings\ndef f():\n    warnings.warn('careful')\nf()\nprint(len(warnings.filters))"),
    "seeded": plain(
        "import random, numpy\nrandom.seed(1); numpy.random.seed(1)\nprint(random.random(), numpy.random.rand(), "
        "numpy.random.default_rng(1).random())"
    ),
    "linear_algebra": plain("import numpy\na = numpy.arange(90000.).reshape(300, 300)\nprint((a @ a.T).sum(), numpy.linalg.det(numpy.eye(3)))"),
    "mutates_globals": plain("import numpy, json\nnumpy.int64 = None\njson.dumps = None\nprint('mutated')"),
    "sees_no_mutation": plain("import numpy, json\nprint(numpy.int64, json.dumps({'a': 1}))"),
    "spawns": plain(
        "import multiprocessing as m\nfrom work import square\nif __name__ == '__main__':\n"
        "    with m.get_context('spawn').Pool(2) as pool: print(pool.map(square, [1, 2, 3]))",
        work="def square(x): return x * x\n",
    ),
    "forks": plain(
        "import multiprocessing as m\ndef square(x): return x * x\n"
        "if __name__ == '__main__':\n    with m.get_context('fork').Pool(2) as pool: print(pool.map(square, [1, 2, 3]))"
    ),
    "forks_by_hand": plain(
        "import os\npid = os.fork()\nif pid == 0:\n    print('child'); os._exit(0)\nos.waitpid(pid, 0); print('parent')"
    ),
    "executes_itself_again": plain(
        "import os, sys\nif 'again' not in sys.argv:\n    os.execv(sys.executable, [sys.executable, *sys.argv, 'again'])\nprint(sys.argv)"
    ),
    "subprocess": plain("import subprocess, sys; print(subprocess.check_output([sys.executable, '-c', 'print(1)']))"),
    "pickles_main": plain(
        "import pickle\nclass C:\n    x = 1\nprint(C.__module__, pickle.loads(pickle.dumps(C())).x)\n"
        "import inspect; print(inspect.getsource(C))"
    ),
    "event_loop": plain("import asyncio\nasync def f(): return 7\nprint(asyncio.run(f()))"),
    "temporary_files": plain("import tempfile; t = tempfile.mkdtemp(); print(t.rsplit('/', 1)[0])"),
    "package": plain("", words="-m pkg.train --x 1", pkg____init__="", pkg__train="import sys; print(__name__, sys.argv, __spec__.name, sys.path[0])\n1 / 0"),
    "beside_the_script": plain("import helper; print(helper.__file__, helper.x)", helper="x = 1\n"),
    "in_a_folder": Script(source="", words="sub/run.py", files={"sub/run.py": "import near, sys; print(near.x, sys.path[0])", "sub/near.py": "x = 3"}),
    "deep_recursion": plain("def f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(900))"),
    "thread_pools": plain(
        "import os, numpy, threadpoolctl\nprint(sorted((p['internal_api'], p['num_threads']) for p in threadpoolctl.threadpool_info()))\n"
        "print(os.environ.get('OMP_NUM_THREADS'))"
    ),
    "hides_an_installed_package": plain("import numpy; print(numpy.mine)", numpy="mine = True\n", launch="cold"),
    "hides_the_standard_library": plain("import select; print(select.mine)", select="mine = True\n", launch="cold"),
    "not_python": Script(source="print(1)", words="-u t.py", launch="cold"),
}  # fmt: skip
