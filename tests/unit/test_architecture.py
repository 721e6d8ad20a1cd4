"""The rules of the code that no linter holds: sizes, docstrings, the starter's imports, generated code, paths."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

import proto
from cli.client import frames
from cli.submit.submission import KILLED_WHILE_PENDING
from cli.submit.submit_options import SUBMIT_DEFAULTS
from docs.generate.pages import outdated
from lava_client import follow, link, local, options
from proto import agent_pb2
from proto.commands import COMMANDS, SUBCOMMANDS
from proto.options import BY_NAME
from proto.version import PROTOCOL, VERSION
from tests.conftest import FIRST

ROOT = Path(__file__).parents[2]
PACKAGES = ("lavad", "agent", "cli", "config", "proto", "client/lava_client", "web")
CLIENT = (
    ("__init__", "joblib"),
    ("executor",),
    ("pool",),
    ("kills", "late", "settings"),
    ("cluster", "call"),
    ("job",),
    ("session", "card"),
    ("follow", "local", "rest"),
    ("link", "service", "checkpoint"),
    ("site", "folder", "pickling", "options", "atexit", "ranks"),
    ("ranks.collective",),
    ("ranks.links",),
    ("ranks.group",),
    ("errors", "worker"),
)
"""The modules of lava_client from the top: each imports those below only."""
BESIDE = ("examples", "benchmarks", "docs", "tests")
LONGEST = 400
MOST_FILES = 25
ONE_A_COMMAND = ("cli", "lavad/queries/jobs")
MOST_OPEN = 67
MOST_PARAMETERS = 8
MANY_PARAMETERS = {
    "client/lava_client/executor.py:__init__",  # options of a class of users, by keyword only
    "proto/commands.py:__init__",  # a row of a table, which may import nothing
}
GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$")


def sources(*folders: str) -> list[Path]:
    """The hand-written Python files below the folders."""
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in found if not GENERATED.search(path.name)]


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git says what belongs to lava, and this is not its checkout")
@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_the_top_level_has_no_other_folders() -> None:
    """And no file has a name that a test made, which wrote to the wrong place."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    assert [name for name in listed if not re.fullmatch(r"[\w./+@-]*", name)] == []
    folders = {line.split("/")[0] for line in listed if "/" in line}
    assert folders == {name.split("/")[0] for name in (*PACKAGES, *BESIDE)} | {".ci"}


def test_no_file_is_too_long() -> None:
    """A file has at most 400 lines."""
    native = [path for folder in PACKAGES for path in sorted((ROOT / folder).rglob("*.[ch]"))]
    lengths = {short(path): len(path.read_text().splitlines()) for path in (*sources(*PACKAGES, *BESIDE), *native)}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_no_folder_has_too_many_files() -> None:
    """A folder has at most 25 files, but those with one for each command."""
    kinds = {".py", ".md", ".c", ".h", ".js", ".css", ".html", ".svg", ".png", ".json", ".service"}
    paths = [path for folder in (*PACKAGES, *BESIDE) for path in (ROOT / folder).rglob("*") if path.suffix in kinds]
    folders = Counter(short(path.parent) for path in paths)
    assert {name: count for name, count in folders.items() if count > MOST_FILES and name not in ONE_A_COMMAND} == {}


def test_no_function_is_too_long() -> None:
    """A function has at most 60 lines."""
    long = {}
    for path in sources(*PACKAGES, *BESIDE):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if text.count("\n") > 60 else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > 60:
                    long[f"{short(path)}:{node.name}"] = length
    assert long == {}


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Their names, without the object or class that a method is of."""
    given = node.args
    found = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    names = [one.arg for one in found if one is not None]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def test_no_function_has_too_many_parameters() -> None:
    """A function has at most 8; what it gets together belongs into a record."""
    many = {
        f"{short(path)}:{node.name}": len(parameters(node))
        for path in sources(*PACKAGES, "benchmarks", "docs", "examples")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(parameters(node)) > MOST_PARAMETERS
    }
    assert many.keys() == MANY_PARAMETERS, many


def test_few_lines_leave_a_type_open() -> None:
    """``Any`` stands where a type is known at run time only: the wire, SQL rows, registries by class. Elsewhere it hides errors.

    The ceiling is what there is: a new ``Any`` has to take the place of an old one.
    """
    lines = set()
    for path in sources("lavad", "agent", "cli", "config"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "Any" in text else ():
            if isinstance(node, ast.Name) and node.id == "Any":
                lines.add((short(path), node.lineno))
    assert len(lines) <= MOST_OPEN, sorted(lines)


def test_every_module_says_what_it_is_for() -> None:
    """Each module that holds code opens with a docstring."""
    others = [path for path in sources(*PACKAGES, *BESIDE) if not path.read_text().startswith('"""')]
    trees = {short(path): ast.parse(path.read_text()) for path in others}
    assert [name for name, tree in trees.items() if tree.body and not ast.get_docstring(tree)] == []


def imported(tree: ast.AST) -> set[str]:
    """The top-level names that a module imports."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0] if not node.level else ".")
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
    return found


def test_the_starter_imports_the_standard_library_only() -> None:
    """It forks for every job: nothing heavy, no threads, may be loaded in it."""
    for path in sources("agent/starter"):
        strange = imported(ast.parse(path.read_text())) - set(sys.stdlib_module_names) - {"agent"}
        assert not strange, f"{short(path)} imports {sorted(strange)}"


def _client_module(path: Path) -> str:
    """By its dotted name; ``lava_client.__init__`` is the package itself."""
    parts = path.relative_to(ROOT / "client").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


def test_the_client_imports_the_standard_library_and_downwards_only() -> None:
    """It is installed in environments of users, where nothing of lava's is. cloudpickle is taken where it is installed."""
    order = {f"lava_client.{name}": place for place, names in enumerate(CLIENT) for name in names}
    paths = {_client_module(path): path for path in sources("client/lava_client")}
    assert paths.keys() == order.keys()
    for module, path in paths.items():
        tree = ast.parse(path.read_text(), feature_version=(3, 9))
        strange = imported(tree) - set(sys.stdlib_module_names) - {"lava_client", "cloudpickle", "typing_extensions"}
        strange -= {path.stem} & {"joblib"}
        assert not strange, f"{short(path)} imports {sorted(strange)}"
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and "lava_client" in str(node.module)]
        names = {
            f"{node.module}.{name.name}" if node.module == "lava_client" else node.module for node in nodes for name in node.names
        }
        up = {name for name in names if order[str(name)] <= order[module]}
        assert not up, f"{short(path)} imports {sorted(map(str, up))}"
    assert imported(ast.parse((ROOT / "client/lava_client/worker.py").read_text())) <= {*sys.stdlib_module_names, "cloudpickle"}


def test_the_client_speaks_what_the_commands_speak() -> None:
    """It can import nothing of lava's, so these facts stand twice."""
    assert (local.PROTOCOL, link.LARGEST_ASK, link.LARGEST_ANSWER) == (PROTOCOL, frames.LARGEST_ASK, frames.LARGEST_ANSWER)
    assert options.DEFAULTS == SUBMIT_DEFAULTS
    assert {name for name in options.NAMES.values() if name not in BY_NAME} == set()
    assert KILLED_WHILE_PENDING == follow.KILLED_WHILE_PENDING
    client = tomllib.loads((ROOT / "client/pyproject.toml").read_text())["project"]
    assert (client["version"], client["dependencies"]) == (VERSION, [])


ZONED = {"fromtimestamp": 2, "now": 1, "astimezone": 1}
"""Methods that take the system's zone where they get fewer arguments."""
SYSTEM_TIME = {"localtime", "mktime", "today", "utcnow"}


def test_the_core_has_no_time_zone_of_its_own() -> None:
    """Deciding and scheduling are told the time and its zone: a replay elsewhere decides the same."""
    found = []
    for path in sources("lavad/core", "lavad/sched", "agent/core"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            name = node.func.attr
            if name in SYSTEM_TIME or len(node.args) + len(node.keywords) < ZONED.get(name, 0):
                found.append(f"{short(path)}:{node.lineno}: {name}")
    assert found == []


def test_the_core_imports_words_of_users_and_answers_only() -> None:
    """import-linter names the modules of proto that the core may not have; here a new one is caught too."""
    for path in sources("lavad/core", "lavad/sched", "agent/core"):
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        strange = {node.module for node in nodes if str(node.module).split(".")[0] == "proto"} - {
            "proto.options",
            "proto.numbers",
            "proto.roles",
            "proto.answers",
        }
        assert not strange, f"{short(path)} imports {sorted(map(str, strange))}"


def test_all_of_lavad_but_the_wire_room_is_kept_from_the_messages() -> None:
    """import-linter takes a list for that, which a new module has to be on."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    named = next(one for one in contracts if one.get("forbidden_modules") == ["proto.agent_pb2"])["source_modules"]
    rooms = {path.relative_to(ROOT / "lavad").parts[0].removesuffix(".py") for path in sources("lavad")}
    assert set(named) == {f"lavad.{room}" for room in rooms - {"__init__", "wire"}}


def test_no_command_is_a_library() -> None:
    """What commands share stands in a room below them; `lava` alone runs others, and those that show are one module.

    What installs the commands writes their manual pages too.
    """
    commands = {row.module for row in COMMANDS.values()} | {row.module for row in SUBCOMMANDS.values()}
    commands.remove("cli.listing")
    allowed = {"cli/install_commands.py": {"cli.manpages"}}
    for path in sources("cli"):
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        modules = {f"{node.module}.{name.name}" for node in nodes if node.module == "cli" for name in node.names}
        strange = commands & {*modules, *(str(node.module) for node in nodes)} - allowed.get(short(path), set())
        assert not strange or short(path) == "cli/lava.py", f"{short(path)} imports {sorted(strange)}"


def test_commands_are_isolated_from_the_packages_of_others() -> None:
    """`proto` is lava's, not a package of the same name that something else has installed."""
    assert Path(str(proto.__file__)).parent == ROOT / "proto"


def compile_proto(folder: Path, *options: str) -> None:
    argv = [sys.executable, "-m", "grpc_tools.protoc", "-I", ".", *options, "proto/agent.proto"]
    subprocess.run(argv, cwd=ROOT, check=True, timeout=120)


def messages(holder: descriptor_pb2.FileDescriptorProto) -> list[descriptor_pb2.DescriptorProto]:
    """All messages of a file, the nested ones (map entries) too."""
    found = list(holder.message_type)
    for message in found:
        found.extend(message.nested_type)
    return found


def test_generated_code_says_what_the_proto_says(tmp_path: Path) -> None:
    """The descriptor in agent_pb2.py is that of agent.proto; `make stubs` brings it up to date."""
    compile_proto(tmp_path, f"--descriptor_set_out={tmp_path}/set")
    fresh = descriptor_pb2.FileDescriptorSet.FromString((tmp_path / "set").read_bytes())
    committed = descriptor_pb2.FileDescriptorProto.FromString(agent_pb2.DESCRIPTOR.serialized_pb)
    for message in messages(fresh.file[0]):
        for field in message.field:
            field.ClearField("json_name")
    assert fresh.file[0] == committed, "proto/agent_pb2.py is out of date: make stubs"


def test_generated_code_is_as_the_compiler_writes_it(tmp_path: Path) -> None:
    """All three files, byte by byte, when the installed compiler is the one that wrote them."""
    stamp = re.search(r"GRPC_GENERATED_VERSION = '([^']+)'", (ROOT / "proto/agent_pb2_grpc.py").read_text())
    assert stamp is not None
    if stamp[1] != version("grpcio-tools"):
        pytest.skip(f"written by grpcio-tools {stamp[1]}, installed is {version('grpcio-tools')}")
    compile_proto(tmp_path, *(f"--{kind}_out={tmp_path}" for kind in ("python", "pyi", "grpc_python")))
    for path in sorted((tmp_path / "proto").iterdir()):
        assert (ROOT / "proto" / path.name).read_text() == path.read_text(), f"proto/{path.name}: make stubs"


def test_the_reference_says_what_the_code_says() -> None:
    assert outdated() == [], "docs/reference is out of date: make reference, and commit it"


def test_the_files_of_tests_that_begin_are_there() -> None:
    assert [name for name in FIRST if not (ROOT / "tests" / name).is_file()] == []


def test_no_path_of_one_machine() -> None:
    """Nothing depends on where somebody happened to build it."""
    stray = re.compile("/wor" + r"k/|/ro" + r"ot/\.")
    kinds = {".py", ".md", ".toml", ".proto", ".c", ".sh", ""}
    folders = (*PACKAGES, "tests", "examples", "benchmarks", "docs", ".ci")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in kinds and path.is_file()]
    found = [short(path) for path in [*files, ROOT / "README.md", ROOT / "Makefile"] if stray.search(path.read_text())]
    assert found == []


def test_what_may_hang_has_threads_of_its_own() -> None:
    """Daemons use proto/daemon/workers.py, never the pool that all of asyncio shares; users are looked up by proto/names.py.

    Left out: what a process does once when it starts, and the process that writes lsb.events, which nobody waits for.
    """
    shared = re.compile(r"\b(to_thread|run_in_executor)\b")
    looks_up = re.compile(r"\bpwd\.getpw|\bgethostby|\bgetaddrinfo\b")
    alone = {"agent/main.py", "agent/launch/launchers.py", "lavad/lsb/lines.py", "lavad/devtools/private_postgres.py"}
    daemons = sources("lavad", "agent", "proto", "web")
    assert [short(path) for path in daemons if shared.search(path.read_text())] == []
    assert {short(path) for path in daemons if looks_up.search(path.read_text())} <= alone


def test_no_test_runs_python_in_a_fork_of_its_own_process() -> None:
    """pytest's process may have the threads of gRPC, whose handlers then abort the child now and then."""
    forks = []
    for path in sources("tests"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "fork" in text or "preexec_fn" in text else ():
            if isinstance(node, ast.Attribute) and node.attr in ("fork", "forkpty"):
                forks.append(f"{short(path)}:{node.lineno}")
            elif isinstance(node, ast.keyword) and node.arg == "preexec_fn":
                forks.append(f"{short(path)}:{node.value.lineno}")
    assert forks == []


def test_the_processes_with_grpc_start_programs_without_a_fork() -> None:
    """With these arguments subprocess forks, and gRPC's handlers of forks start its threads in the child; without, vfork."""
    forking = {"preexec_fn", "user", "group", "extra_groups"}
    starts = {"Popen", "run", "create_subprocess_exec", "create_subprocess_shell"}
    found = []
    for path in [
        path
        for path in sources("lavad", "agent")
        if "agent/starter/" not in str(path) and not {"devtools", "checkpointing"}.intersection(path.parts)
    ]:
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if any(word in text for word in forking) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in starts:
                found += [f"{short(path)}:{node.lineno}" for word in node.keywords if word.arg in forking]
    assert found == []
