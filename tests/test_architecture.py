"""The house: rooms from the top to the bottom, imports that only go down, doors that name what may be used."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import sfumato

#: From the top of the house to the bottom: a room may use the rooms below it, through their doors, and no other.
ROOMS = "paper studio cli show evaluate ledger design release proof programs promise noise models regions data linalg"
RANK = {room: rank for rank, room in enumerate(ROOMS.split())}

#: The ways into the house know every room. All other files beside the rooms know none, and every room may use them.
ENTRANCES = {"__init__", "__main__", "plots"}

SOURCE = Path(sfumato.__file__).parent
FILES = {path.relative_to(SOURCE).with_suffix("").as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}


def room_of(name: str) -> str | None:
    return name.split("/")[0] if "/" in name else None


def imports(name: str) -> list[tuple[str | None, str, str]]:
    """(room or None, file or "", imported name) of every import from sfumato in a file: lazy and typing ones too."""
    found = []
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            targets = [(alias.name.split("."), "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = ["sfumato", *name.split("/")[:-1]] if node.level else []
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            targets = [(base, alias.name) for alias in node.names]
        else:
            continue
        for path, imported in targets:
            if path[0] == "sfumato":
                inside = [*path[1:], imported] if len(path) == 1 else path[1:]
                if inside[0] in RANK:
                    found.append((inside[0], "/".join(inside[1:]), imported))
                else:
                    found.append((None, inside[0], imported))
    return found


def test_few_files_lie_beside_the_rooms_and_every_folder_is_a_room():
    assert len([name for name in FILES if "/" not in name]) <= 12
    assert {room_of(name) for name in FILES} - {None} <= set(RANK)


@pytest.mark.parametrize("name", [name for name in FILES if name not in ENTRANCES])
def test_imports_only_go_down_and_through_doors(name):
    mine = room_of(name)
    for room, file, imported in imports(name):
        if room is None:
            assert file not in ENTRANCES, f"{name} imports {file}, which knows every room"
        elif mine is None:
            pytest.fail(f"{name} lies beside the rooms and imports {room}")
        elif room != mine:
            assert RANK[room] > RANK[mine], f"{name} imports {room}, which is above it"
            assert not file, f"{name} imports {room}/{file}; take {imported} from the door of {room}"


@pytest.mark.parametrize("room", sorted({room_of(name) for name in FILES} - {None}))
def test_a_room_says_what_happens_there_and_names_what_others_may_use(room):
    door = TREES[f"{room}/__init__"]
    assert (ast.get_docstring(door) or "").count(".") >= 3, (
        "three sentences: what happens, what comes in, what goes out"
    )
    named = {alias.name for node in door.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    used = {
        imported
        for name in FILES
        for target, file, imported in imports(name)
        if target == room != room_of(name) and not file
    }
    assert used == named, "a door names what other rooms use, and nothing else"


def test_inside_a_room_files_know_each_other_in_one_direction():
    for room in RANK:
        knows = {
            name: {f"{room}/{file}" for target, file, _ in imports(name) if target == room and file}
            for name in FILES
            if room_of(name) == room
        }
        while free := [name for name, others in knows.items() if not others & set(knows)]:
            for name in free:
                del knows[name]
        assert not knows, f"these files of {room} know each other in a circle"


def test_the_package_is_imported_without_pytorch_and_every_public_name_is_there():
    for name in sfumato.__all__:
        assert getattr(sfumato, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sfumato.nothing


FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal", "random"}
FORBIDDEN_NAMES = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_ATTRIBUTES = {"torch.load", "torch.manual_seed", "np.random", "numpy.random", "torch.rand", "torch.randn"}


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def unsafe(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in FORBIDDEN_MODULES]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
            found += [name for name in names if name.split(".")[0] in FORBIDDEN_MODULES or name in FORBIDDEN_ATTRIBUTES]
        elif isinstance(node, ast.Attribute):
            name = dotted(node)
            found += [name] if name in FORBIDDEN_ATTRIBUTES or node.attr == "manual_seed" else []
        elif isinstance(node, ast.Name) and node.id in FORBIDDEN_NAMES:
            found.append(node.id)
    return found


@pytest.mark.parametrize("name", [name for name in FILES if room_of(name) != "paper"])
def test_nothing_unsafe_is_called(name):
    assert unsafe(TREES[name]) == []


def test_the_check_for_unsafe_calls_finds_them():
    text = "import pickle\nfrom torch import load\nnp.random.seed(1)\neval('1')\ntorch.random.manual_seed(0)"
    found = unsafe(ast.parse(text))
    assert {"pickle", "torch.load", "np.random", "eval"} <= set(found)
    assert any(name.endswith("manual_seed") for name in found)


@pytest.mark.parametrize("name", list(FILES))
def test_every_file_says_what_it_is_for_and_is_named_after_it(name):
    assert (ast.get_docstring(TREES[name]) or "").strip()
    assert not re.search(r"util|helper|manager|misc|common", name)
