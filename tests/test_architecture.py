"""The module map: imports only go down, nothing unsafe is called, no file grows too long."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import sfumato

SOURCE = Path(sfumato.__file__).parent

#: From the top of the map to the bottom; a module may import from lower layers only, never from its own.
LAYERS = [
    ["__main__"],
    ["cli"],
    ["cli_ledger", "cli_report"],
    ["cli_tradeoff"],
    ["cli_protect"],
    ["cli_audit", "cli_outputs", "cli_paper", "cli_stream"],
    ["paper.reproduce"],
    ["demo", "paper.census_figures", "paper.example", "paper.satellite_figures", "paper.satellite_joint_figure"],
    ["report_page"],
    ["report_ledger", "report_owner", "report_sections", "report_verdict"],
    ["report_figures"],
    ["report_certificate", "report_pitfalls"],
    ["report_facts"],
    ["paper.census_study"],
    ["paper.census_exposure", "paper.census_fallback", "paper.census_models"],
    ["paper.census_data"],
    ["paper.satellite_rival_figures", "paper.satellite_trajectory"],
    ["paper.satellite_panels"],
    ["paper.satellite_study"],
    ["paper.satellite_releases", "paper.study_table"],
    ["paper.satellite_joint"],
    ["paper.satellite_models", "paper.satellite_stationary"],
    ["audit_figure"],
    ["plots", "speech"],
    ["ledger_figure", "plot_maps", "plot_slices", "plot_trajectory", "tradeoff_figure"],
    ["plot_style", "plot_view"],
    ["tradeoffs"],
    ["tradeoff_arguments", "tradeoff_cloaking", "tradeoff_readers", "tradeoff_result"],
    ["tradeoff_words"],
    ["attacks.audit"],
    [
        "attacks.averaging",
        "attacks.better_prior",
        "attacks.holds_rows",
        "attacks.knows_values",
        "attacks.low_bits",
        "attacks.refit",
        "attacks.seeds",
    ],
    ["attacks.bayes", "attacks.grid", "attacks.stationary"],
    ["attacks.outcome"],
    ["attacks.target"],
    ["paper.satellite"],
    ["rivals.averaged_draws", "rivals.standard_dp"],
    ["rivals.cloaking"],
    ["rivals.baselines", "rivals.dp_draw", "rivals.dp_noise", "rivals.ellipsoid"],
    ["rivals.optimal_design", "rivals.prediction_map"],
    ["rivals.optimal_design_newton"],
    ["estimator"],
    ["ledger"],
    ["remaining"],
    ["mechanism"],
    ["plan"],
    ["compression", "folder_writer"],
    ["ledger_problem"],
    ["units"],
    ["past"],
    ["promises"],
    ["attempts", "protect_arguments"],
    ["protect_joint"],
    ["search"],
    ["tightening"],
    ["compressed_problem", "cover"],
    ["problem"],
    ["closed_form"],
    ["audience"],
    ["release"],
    ["gpytorch_reader"],
    ["release_file", "release_record"],
    ["design_parts"],
    ["certificate"],
    ["compressed_optimality", "compressed_posterior", "promise_words"],
    ["related_outputs"],
    ["centres", "compressed_reader", "optimality"],
    ["reader", "resolution", "virtual_rows"],
    ["composition"],
    ["measurements"],
    ["design", "gathering", "summary"],
    ["functional_noise"],
    ["covariances", "features"],
    ["composed_noise"],
    ["folder_run"],
    ["release_folder"],
    ["dask_rows", "parquet_rows", "row_files"],
    ["table_parts"],
    ["row_scan", "run_key"],
    ["engine.on_dask"],
    ["dask_part", "engine.here", "engine.sealed", "engine.thread_share"],
    ["engine.engine", "stored_inputs"],
    ["parts"],
    ["programs.everywhere"],
    ["programs.correlated", "programs.diagonal", "programs.roots", "programs.uniform"],
    ["programs.joint"],
    ["solvers.central_path", "solvers.sifting", "solvers.subspace"],
    ["solvers.column_solver", "solvers.interior_point"],
    ["solvers.barrier", "solvers.multipliers", "solvers.view"],
    ["programs.demand"],
    ["spectral.blocks"],
    ["spectral.criterion"],
    ["spectral.densities"],
    ["spectral.kernel_identity", "spectral.kernel_terms", "spectral.radial_inversion"],
    ["spectral.log_bessel", "spectral.matern_series", "spectral.radial_quadrature"],
    ["linalg.block_pivots", "linalg.conjugate_gradients", "linalg.one_thread", "linalg.sign_positive_part"],
    [
        "linalg.parallel_sum",
        "linalg.pivoted_cholesky",
        "linalg.positive_part",
        "linalg.subspace",
        "linalg.triangular",
        "linalg.weighting",
    ],
    ["prediction"],
    ["kernel_units"],
    ["column_map", "sklearn_reader"],
    ["entropy"],
    ["noise"],
    ["regions", "relations"],
    ["region_tree", "region_text"],
    ["region_outputs"],
    ["region_sets"],
    ["region_shapes"],
    ["region_box"],
    ["region_interface"],
    ["low_discrepancy"],
    ["tolerance"],
    ["fit"],
    ["fit_arguments", "fit_search"],
    ["fit_model"],
    ["joint_prior"],
    ["prior"],
    ["gpytorch_models", "kernel_words", "sklearn_models"],
    ["model_tree"],
    ["outputs_tree"],
    ["outputs_kernel", "outputs_mean"],
    ["coregionalisation", "functionals", "kernel_derivatives"],
    ["affine_transforms", "differentiable_kernel", "full_noise"],
    ["report_file"],
    ["chained_file", "container", "dense_kernel", "power_units", "progress", "tensors", "tree_checks"],
    ["stacking"],
    ["inputs"],
    ["column_types", "machine", "parquet_files", "report_html", "report_style", "row_labels", "tables"],
    ["errors"],
    [
        "__init__",
        "attacks.__init__",
        "engine.__init__",
        "linalg.__init__",
        "paper.__init__",
        "programs.__init__",
        "rivals.__init__",
        "solvers.__init__",
        "spectral.__init__",
    ],
]
HEIGHT = {module: -depth for depth, layer in enumerate(LAYERS) for module in layer}

#: Imports that go up, each inside a function and each with its reason.
EXCEPTIONS = {
    ("remaining", "ledger_figure"): "a picture is asked of the numbers that it shows",
    ("tradeoff_result", "tradeoff_figure"): "a picture is asked of the numbers that it shows",
    ("region_interface", "region_sets"): "a | b and a & b build sets, which are themselves regions",
}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


FILES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}


def resolve(module: str, node: ast.ImportFrom) -> list[str]:
    """The sfumato modules that a ``from … import …`` reaches, as names of this map."""
    if node.level == 0:
        parts = (node.module or "").split(".")
        if parts[0] != "sfumato":
            return []
        base = parts[1:]
    else:
        base = module.split(".")[: -node.level] + (node.module.split(".") if node.module else [])
    reached = []
    for alias in node.names:
        deeper, here = ".".join([*base, alias.name]), ".".join(base)
        package = ".".join([*base, "__init__"])
        reached.append(deeper if deeper in FILES else here if here in FILES else package)
    return reached


def imports(module: str) -> set[str]:
    reached: set[str] = set()
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.ImportFrom):
            reached.update(resolve(module, node))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "sfumato":
                    reached.add(alias.name.partition(".")[2] or "__init__")
    return reached


def top_level_imports(module: str) -> set[str]:
    body = [node for node in TREES[module].body if isinstance(node, ast.ImportFrom)]
    return {name for node in body for name in resolve(module, node)}


def test_every_module_has_its_place_on_the_map():
    assert set(FILES) == set(HEIGHT)


@pytest.mark.parametrize("module", [name for name in FILES if name != "__init__"])
def test_imports_only_go_down(module):
    up = {other for other in imports(module) if HEIGHT[other] >= HEIGHT[module] and other != module}
    assert up <= {other for source, other in EXCEPTIONS if source == module}
    assert module not in imports(module)


def test_every_exception_is_still_needed_and_inside_a_function():
    for source, other in EXCEPTIONS:
        assert other in imports(source)
        assert other not in top_level_imports(source)


def test_the_package_itself_imports_nothing_of_its_own_when_it_is_imported():
    """Typing aside, names are fetched when they are first asked for, so that ``sfumato --help`` is quick."""
    assert top_level_imports("__init__") == set()


def test_every_public_name_is_there():
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


def unsafe(module: str) -> list[str]:
    found = []
    for node in ast.walk(TREES[module]):
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


@pytest.mark.parametrize("module", [name for name in FILES if not name.startswith("paper")])
def test_nothing_unsafe_is_called(module):
    assert unsafe(module) == []


def test_the_check_for_unsafe_calls_finds_them(monkeypatch):
    text = "import pickle\nfrom torch import load\nnp.random.seed(1)\neval('1')\ntorch.random.manual_seed(0)"
    monkeypatch.setitem(TREES, "made up", ast.parse(text))
    assert {"pickle", "torch.load", "np.random", "eval"} <= set(unsafe("made up"))
    assert any(name.endswith("manual_seed") for name in unsafe("made up"))


@pytest.mark.parametrize("module", list(FILES))
def test_no_file_is_longer_than_520_lines(module):
    assert len(FILES[module].read_text(encoding="utf-8").splitlines()) <= 520


@pytest.mark.parametrize("module", list(FILES))
def test_every_module_says_what_it_is_for(module):
    assert (ast.get_docstring(TREES[module]) or "").strip()


def test_names_say_what_a_thing_is():
    assert not [name for name in FILES if re.search(r"util|helper|manager|misc|common", name)]
