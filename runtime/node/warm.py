"""What makes a launcher warm: it runs in the job's own Python, has the heavy imports done, and its forks *become* the
job's script instead of executing it.

Everything else (supervision, kills, logs, records) is the launcher's and the supervisor's, unchanged. Standard library
only, for any Python from 3.9 on: nightlab need not be installed in the environment that it runs in.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import select
import signal
import sys
import tempfile
import threading

from runtime.node.supervisor import name_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SELF_TEST_S = 60.0
SUGGESTED = "?"
"""Before a name that nobody declared: where it can not be imported, the script will say so itself, or do without."""
OLDEST_PYTHON = (3, 9)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "RAYON_NUM_THREADS")
_POOLS = (
    ("OPENBLAS_NUM_THREADS", ("openblas_set_num_threads", "openblas_set_num_threads64_")),
    ("OPENBLAS_NUM_THREADS", ("scipy_openblas_set_num_threads", "scipy_openblas_set_num_threads64_")),
    ("MKL_NUM_THREADS", ("MKL_Set_Num_Threads",)),
    ("OMP_NUM_THREADS", ("omp_set_num_threads",)),
)
"""Variable, and the functions by which a loaded library is told the same. Source: OpenBLAS, oneMKL, OpenMP manuals."""
_interrupts: list[BaseException] = []
_setters: list[tuple[str, Any]] = []
_POOL_LIBRARIES = ("openblas", "libmkl_rt", "libgomp", "libiomp", "libomp")


class Unfit(Exception):
    """This set of imports can not be kept warm. The message says why."""


def load(names: list[str], facts_path: str) -> None:
    """Import the modules, prove that forks of this process work, and leave the facts in a file.

    Raises:
        Unfit: an import failed, printed, left threads, files or devices behind, or the proof failed.
    """
    if sys.version_info < OLDEST_PYTHON:
        raise Unfit(f"Python {sys.version.split()[0]} is too old for warm starts")
    _import_quietly(names)
    _check_alone()
    _find_setters()
    _prove_forks()
    facts = {"modules": sorted({name.partition(".")[0] for name in sys.modules}), "watched": _watched()}
    with open(facts_path + ".tmp", "w") as file:
        json.dump(facts, file)
    os.rename(facts_path + ".tmp", facts_path)


def _import_quietly(names: list[str]) -> None:
    before = _open_files(), os.getcwd()
    saved = [os.dup(1), os.dup(2)]
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        try:
            for asked in names:
                name = asked.lstrip(SUGGESTED)
                try:
                    __import__(name)
                except ImportError as error:
                    if name == asked:
                        raise Unfit(f"importing {name} failed: {type(error).__name__}: {error}"[:300]) from None
                except BaseException as error:  # noqa: BLE001 - it is foreign code, and the reason is passed on
                    raise Unfit(f"importing {name} failed: {type(error).__name__}: {error}"[:300]) from None
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            for descriptor, copy in zip((1, 2), saved):  # noqa: B905 - `strict` is of Python 3.10
                os.dup2(copy, descriptor)
                os.close(copy)
        said.seek(0)
        printed = said.read(200).decode(errors="replace").strip()
        if printed:
            raise Unfit(f"importing {', '.join(names)} prints: {printed!r}"[:300])
    files, folder = _open_files(), os.getcwd()
    if folder != before[1]:
        raise Unfit(f"importing {', '.join(names)} changes the working directory (to {folder})"[:300])
    if files != before[0]:
        kept = sorted(set(files.values()) - set(before[0].values()))
        raise Unfit(f"importing {', '.join(names)} leaves files open ({', '.join(kept[:3])})"[:300])


def _open_files() -> dict[str, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = os.readlink("/proc/self/fd/" + name)
        except OSError:
            continue
    return {name: target for name, target in found.items() if not target.startswith("/proc/")}


def _check_alone() -> None:
    names = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    if names:
        raise Unfit(f"the imports start threads ({', '.join(names)}), which a fork would lose"[:300])
    with open("/proc/self/maps") as file:
        has_device = "/dev/nvidia" in file.read()
    torch: Any = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "cuda"):
        counted = getattr(torch.cuda, "_cached_device_count", None) is not None
        has_device = has_device or counted or torch.cuda.is_initialized()
    if has_device:
        raise Unfit("the imports open a device, which a fork can not share")


def _prove_forks() -> None:
    """A fork computes with all that is loaded and ends in order."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _compute()
        sys.exit(0)  # By the interpreter's own end, like a job.
    descriptor = os.pidfd_open(pid)
    is_over = bool(select.select([descriptor], [], [], SELF_TEST_S)[0])
    os.close(descriptor)
    if not is_over:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        code = os.waitstatus_to_exitcode(status)
        what = f"hung for {SELF_TEST_S:g} s" if not is_over else f"ended with {code}"
        raise Unfit(f"a fork that computes with these imports {what}")


def _compute() -> None:
    set_threads(dict.fromkeys(THREADS, "2"))
    modules: dict[str, Any] = dict(sys.modules)
    if "numpy" in modules:
        numpy = modules["numpy"]
        square = numpy.ones((300, 300))
        assert (square @ square)[0, 0] == 300.0
    if "sklearn" in modules and "numpy" in modules:
        from sklearn.cluster import KMeans

        KMeans(n_clusters=2, n_init=1, random_state=0).fit(modules["numpy"].arange(600.0).reshape(300, 2))
    if "torch" in modules:
        torch = modules["torch"]
        assert float((torch.ones(300, 300) @ torch.ones(300, 300))[0, 0]) == 300.0
        torch.nn.Linear(8, 8)(torch.ones(4, 8, requires_grad=True)).sum().backward()


def _watched() -> dict[str, list[int]]:
    """What must stay as it is for the imports to be what a cold start would import: time and size by path.

    The folders of all modules (an installation renames files in them), the interpreter, and each file that is not
    from an installation (an editable package).
    """
    paths = {sys.executable, os.path.realpath(sys.executable), os.path.join(sys.prefix, "pyvenv.cfg"), *sys.path}
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None)
        if isinstance(name, str) and os.path.isabs(name):
            paths.add(os.path.dirname(name))
            if "site-packages" not in name and "dist-packages" not in name and not name.startswith(sys.base_prefix):
                paths.add(name)
    found = {}
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            continue
        found[path] = [status.st_mtime_ns, status.st_size]
    return found


def become(order: dict[str, Any], original_path: list[str], kept: dict[str, str]) -> None:
    """In a leader, with its session, output, directory and signals in place: run the script, then end the process.

    Returns as the script does, so that the interpreter ends by itself; raises SystemExit otherwise.
    """
    entry = order["warm"]
    words = [entry["program"], *entry["words"]]
    _put_environment({**kept, **order["env"], **entry["shell_env"]})
    _put_command_line(words, order["marker"])
    name_process(os.path.basename(entry["program"]))
    set_threads(os.environ)
    _reseed()
    tempfile.tempdir = None  # The imports had that of another environment.
    sys.orig_argv = words
    sys.path[:] = original_path
    for name in [name for name in sys.modules if name == "runtime" or name.startswith("runtime.")]:
        del sys.modules[name]
    atexit.register(_die_of_interrupt)  # The first of all, so that it comes last.
    main = type(sys)("__main__")
    main.__dict__.update(__builtins__=sys.modules["builtins"], __annotations__={})
    sys.modules["__main__"] = main
    try:
        if entry["module"] is None:
            sys.argv = list(entry["words"])
            _run_file(sys.argv[0], main)
        else:
            sys.argv = ["-m", *entry["words"][2:]]
            _run_module(entry["module"])
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - the end of a process, as the interpreter itself makes it
        _end_by(error)


def _run_file(name: str, main: Any) -> None:
    from importlib.machinery import SourceFileLoader

    path = os.path.abspath(name)
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    main.__file__ = path
    main.__loader__ = SourceFileLoader("__main__", path)
    main.__cached__ = None
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        sys.stderr.write(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}\n")
        sys.exit(2)
    code = compile(source, path, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def _run_module(name: str) -> None:
    import runpy

    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.getcwd())
    runner: Any = runpy
    runner._run_module_as_main(name)


def _end_by(error: BaseException) -> None:
    """As the interpreter does with an exception that nobody caught; our own frames are left out of the report."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    error.__traceback__ = trace
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    sys.excepthook(type(error), error, trace)
    if isinstance(error, KeyboardInterrupt):
        _interrupts.append(error)
    sys.exit(1)


def _die_of_interrupt() -> None:
    if not _interrupts:
        return
    sys.stdout.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def _put_environment(wanted: dict[str, str]) -> None:
    for name in set(os.environ) - set(wanted):
        del os.environ[name]
    os.environ.update(wanted)


def _put_command_line(words: list[str], marker: str) -> None:
    """Show in /proc what the process is now: its command for people, its marker for who looks for its tree.

    The kernel reads both from the process's own memory, where they were put when the fork server was started.
    """
    with open("/proc/self/stat", "rb") as file:
        stat = file.read()
    fields = stat[stat.rindex(b")") + 2 :].split()
    arguments, arguments_end, variables, variables_end = (int(field) for field in fields[45:49])
    if not arguments or not variables:
        return  # Not for this user to see.
    room = arguments_end - arguments - 2
    line = " ".join(words).encode(errors="surrogateescape")[:room]
    # A last byte that is no NUL tells the kernel that the line was replaced; it then ends at its first NUL.
    ctypes.memmove(arguments, line + b"\0" * (room + 1 - len(line)) + b"\1", room + 2)
    placeholder = f"{_marker_variable()}={'0' * len(marker)}".encode()
    held = ctypes.string_at(variables, variables_end - variables)
    at = held.find(placeholder)
    if at >= 0:
        ctypes.memmove(variables + at, f"{_marker_variable()}={marker}".encode(), len(placeholder))


def _marker_variable() -> str:
    from runtime.node.processes import MARKER_VARIABLE

    return MARKER_VARIABLE


def set_threads(environment: Any) -> None:
    """Give the native thread pools, which were held to one thread while importing, what the environment says."""
    every = len(os.sched_getaffinity(0))
    if not _setters:
        _find_setters()

    def wanted(variable: str) -> int:
        for name in (variable, "OMP_NUM_THREADS"):
            first = str(environment.get(name, "")).partition(",")[0].strip()
            if first.isdigit() and int(first) > 0:
                return int(first)
        return every

    for variable, setter in _setters:
        setter(ctypes.c_int(wanted(variable)))
    modules: dict[str, Any] = dict(sys.modules)
    if "torch" in modules and hasattr(modules["torch"], "set_num_threads"):
        modules["torch"].set_num_threads(wanted("OMP_NUM_THREADS"))
    if "numexpr" in modules and hasattr(modules["numexpr"], "set_num_threads"):
        modules["numexpr"].set_num_threads(wanted("NUMEXPR_NUM_THREADS"))


def _find_setters() -> None:
    """Once, before the forks: what is loaded."""
    with open("/proc/self/maps") as file:
        mapped = {line.split(maxsplit=5)[5].rstrip("\n") for line in file if "/" in line}
    for path in sorted(mapped):
        if any(name in os.path.basename(path) for name in _POOL_LIBRARIES):
            library = ctypes.CDLL(path)
            for variable, names in _POOLS:
                _setters.extend((variable, getattr(library, name)) for name in names if hasattr(library, name))


def _reseed() -> None:
    """Generators that seed themselves when imported would say the same in every fork. `random` sees to itself."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and "numpy.random" in sys.modules:
        numpy.random.seed()
