"""The script that runs the notebooks with other kernels, threads and hash seeds."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tests.book import settings
from tests.book.settings import SETTINGS, environment, main


def test_the_settings_are_those_demanded():
    kernels = {each.get("OPENBLAS_CORETYPE") for each in SETTINGS}
    assert kernels == {None, "Haswell", "Sandybridge", "Nehalem", "Prescott"}
    assert any(each.get("NPY_DISABLE_CPU_FEATURES") == "X86_V3" for each in SETTINGS)
    assert {each["OPENBLAS_NUM_THREADS"] for each in SETTINGS} == {"1", "2"}
    assert {each["PYTHONHASHSEED"] for each in SETTINGS} == {"0", "1"}


def test_kernels_chosen_outside_do_not_leak_in(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Zen")
    assert "OPENBLAS_CORETYPE" not in environment(SETTINGS[0])
    assert environment(SETTINGS[1])["OPENBLAS_CORETYPE"] == "Haswell"


def test_one_failure_fails_the_whole(monkeypatch):
    codes = iter([0, 1, 0, 0, 0, 0])
    monkeypatch.setattr(settings, "run", lambda variables, paths: next(codes))
    assert main([]) == 1


def test_an_unknown_setting_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--only", "7"])
    assert "from 1 to 6" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("stored", "code"), [("Prescott\n", 0), ("Haswell\n", 1)])
def test_a_notebook_really_runs_under_the_setting(tmp_path, stored, code):
    cell = new_code_cell("import os\nprint(os.environ['OPENBLAS_CORETYPE'])", execution_count=1)
    cell.outputs = [new_output("stream", name="stdout", text=stored)]
    nbformat.write(new_notebook(cells=[cell]), tmp_path / "small.ipynb")
    assert main(["--only", "5", "--", str(tmp_path / "small.ipynb")]) == code
