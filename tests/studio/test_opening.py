"""``sf.studio(X, y)``: the room can be called, whatever was imported first; it shows itself or says where it is."""

from __future__ import annotations

import subprocess
import sys
import types

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from raw_http import ask, request
from sfumato.errors import InputError


@pytest.fixture
def opened(monkeypatch):
    """``sf.studio``, whose studios end with the test."""
    studios = []

    def call(*given, **how):
        studios.append(sf.studio(*given, **how))
        return studios[-1]

    yield call
    for one in studios:
        one.stop()


@pytest.mark.processes
@pytest.mark.parametrize(
    "imports",
    [
        "import sfumato.studio, sfumato as sf",
        "import sfumato as sf; sf.studio; import sfumato.studio",
        "import sfumato as sf",
    ],
)
def test_the_room_can_be_called_and_stays_a_room_without_the_extra(imports):
    code = f"""
import sys
sys.modules["nicegui"] = None
{imports}
import importlib.util
importlib.util.find_spec = lambda name: None
assert sf.studio is sys.modules["sfumato.studio"] and sf.studio.__name__ == "sfumato.studio"
from sfumato.studio import server
assert sf.studio.server is server
try:
    sf.studio()
except sf.InputError as error:
    print(error)
assert "torch" not in sys.modules and "pandas" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (
        "the studio needs NiceGUI, which is not installed; get it with: pip install 'sfumato[studio]'\n",
        "",
    )


def test_python_is_told_where_it_is_and_a_notebook_shows_it(opened, monkeypatch, capsys):
    t = np.linspace(0.0, 3.0, 31)
    plain = opened(t, np.sin(t))
    said = capsys.readouterr().out
    assert said.startswith(f"The studio is at {plain.url} ")
    assert "ssh -L" in said
    assert plain.session.rows == 31

    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    shown = opened(pd.DataFrame({"t": t, "r": np.sin(t)}))
    assert shown.url in capsys.readouterr().out
    assert f'<iframe src="{shown.url.replace("127.0.0.1", "localhost")}"' in shown._repr_html_()
    port = shown.server.port
    for one, frames in ((plain, "frame-ancestors 'none'"), (shown, "frame-ancestors http://127.0.0.1:*")):
        assert frames in ask(port, request(f"/{one.token}/", port)).headers["content-security-policy"]
    assert shown.session is not plain.session


def test_a_studio_that_is_stopped_ends_its_work_and_lets_its_waiting_program_go_on(opened):
    studio = opened()
    studio.session.fit.start(lambda tell: [tell("on and on", None) for _ in iter(int, 1)])
    studio.stop()
    assert studio.session.fit.state == "cancelled"
    studio.wait()
    assert repr(studio) == "<studio that has ended>"


def test_y_alone_is_refused():
    with pytest.raises(InputError, match="y and no X"):
        sf.studio(y=[1.0, 2.0])
