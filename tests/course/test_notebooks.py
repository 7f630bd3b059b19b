"""Working copies, the refreshing of chapters, the doctor, and the commands."""

import base64
import importlib
import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from src.course import doctor
from src.course.__main__ import main
from src.course.generated import render, render_head
from src.course.notebooks import find_chapter, open_copy, reset_copy
from src.course.progress import ROOT
from src.course.refresh import RefreshError, large_pictures, normalise, refresh
from tests.course import example


@pytest.fixture
def root(tmp_path):
    """A project with two chapters."""
    chapters = tmp_path / "chapters"
    (chapters / "images").mkdir(parents=True)
    (chapters / "images" / "a.svg").touch()
    (chapters / "glossary.md").touch()
    text = (
        "# Five\n![a](images/a.svg) [key](glossary.md#key) [web](https://a.org/b) [up](../README.md) [here](#five)\n"
        '<img src="images/a.svg">\n```{figure} images/a.svg\n```\n{download}`this <05_five.ipynb>` [no](missing.svg)'
    )
    for name in ("05_five", "12_twelve"):
        nbformat.write(
            new_notebook(cells=[new_markdown_cell(text), new_code_cell("1 + 1")]), chapters / f"{name}.ipynb"
        )
    return tmp_path


# Working copies


def test_chapters_are_found_by_number(root):
    assert find_chapter("5", root).name == "05_five.ipynb" and find_chapter("12", root).name == "12_twelve.ipynb"
    assert find_chapter("05", root).name == "05_five.ipynb"
    for wrong in ("1", "55", "50", "", "five", "../5", "-5", "5.0", "warmup5", "chapters5"):
        with pytest.raises(ValueError, match=r"chapters with a notebook: 5, 12$"):
            find_chapter(wrong, root)


@pytest.fixture
def card(root):
    """The project's only card, with the number of a chapter and a picture of its own."""
    folder = root / "chapters" / "warmup"
    folder.mkdir()
    (folder / "b.svg").touch()
    path = folder / "05_card.ipynb"
    nbformat.write(new_notebook(cells=[new_markdown_cell("![b](b.svg) [a](images/a.svg) [five](05_card.ipynb)")]), path)
    return path


def test_cards_are_found_by_their_word_and_number(root, card):
    assert find_chapter("warmup5", root) == find_chapter("warmup05", root) == card
    assert find_chapter("5", root).name == "05_five.ipynb"
    for wrong in ("warmup", "warmup1", "warmup12", "Warmup5", "warmup 5", "5warmup", "warmup/5"):
        with pytest.raises(ValueError, match=r"chapters with a notebook: 5, 12, warmup5$"):
            find_chapter(wrong, root)


def test_a_page_beside_a_chapter_is_found_by_its_word_and_number(root):
    folder = root / "chapters" / "deeper"
    folder.mkdir()
    nbformat.write(new_notebook(cells=[new_markdown_cell("# Deeper")]), folder / "05_deeper.ipynb")
    assert find_chapter("deeper5", root) == find_chapter("deeper05", root) == folder / "05_deeper.ipynb"
    assert find_chapter("5", root).name == "05_five.ipynb"
    for wrong in ("deeper", "deeper12", "5deeper", "deeper/5"):
        with pytest.raises(ValueError, match=r"chapters with a notebook: 5, 12, deeper5$"):
            find_chapter(wrong, root)


def test_a_card_is_copied_and_reset_like_a_chapter(root, card):
    copy, is_new = open_copy("warmup5", root)
    assert is_new and copy == root / "work" / "05_card.ipynb"
    text = "![b](../chapters/warmup/b.svg) [a](images/a.svg) [five](05_card.ipynb)"
    assert nbformat.read(copy, as_version=4).cells[0].source == text
    copy.write_text("mine", encoding="utf-8")
    assert open_copy("warmup5", root) == (copy, False)
    assert reset_copy("warmup5", lambda question: "y", root) == root / "work" / "backup" / "05_card-1.ipynb"
    assert nbformat.read(copy, as_version=4).cells[0].source == text


def test_open_copies_once_and_turns_links(root):
    copy, is_new = open_copy("5", root)
    assert is_new and copy == root / "work" / "05_five.ipynb"
    assert nbformat.read(copy, as_version=4).cells[0].source == (
        "# Five\n![a](../chapters/images/a.svg) [key](../chapters/glossary.md#key) [web](https://a.org/b) "
        '[up](../README.md) [here](#five)\n<img src="../chapters/images/a.svg">\n'
        "```{figure} ../chapters/images/a.svg\n```\n{download}`this <05_five.ipynb>` [no](missing.svg)"
    )
    copy.write_text("mine", encoding="utf-8")
    assert open_copy("5", root) == (copy, False)
    assert copy.read_text(encoding="utf-8") == "mine"
    assert [path.name for path in copy.parent.iterdir()] == ["05_five.ipynb"]


def test_reset_asks_and_keeps_a_backup(root):
    questions = []

    def answer(text):
        return lambda question: questions.append(question) or text

    copy, _ = open_copy("5", root)
    for round_number, mine in enumerate(("first", "second"), start=1):
        copy.write_text(mine, encoding="utf-8")
        for no in ("", "n", "no", "nay"):
            assert reset_copy("5", answer(no), root) is None
            assert copy.read_text(encoding="utf-8") == mine
        backup = reset_copy("5", answer(" Yes "), root)
        assert backup == root / "work" / "backup" / f"05_five-{round_number}.ipynb"
        assert backup.read_text(encoding="utf-8") == mine
        assert nbformat.read(copy, as_version=4).cells[1].source == "1 + 1"
    assert "work/05_five.ipynb" in questions[0] and "backup/05_five-1.ipynb" in questions[0]


def test_reset_without_a_copy_makes_one_and_asks_nothing(root):
    assert reset_copy("5", lambda question: pytest.fail("asked"), root) is None
    assert (root / "work" / "05_five.ipynb").exists()


# Refreshing


def write(path, *sources, **metadata):
    cells = [new_code_cell(source) for source in sources]
    nbformat.write(new_notebook(cells=cells, metadata=metadata), path)
    return path


def install_kernel(folder, program):
    """Put a kernel called python3 where Jupyter looks first."""
    (folder / "kernels" / "python3").mkdir(parents=True, exist_ok=True)
    spec = {"argv": [str(program), "-m", "ipykernel_launcher"], "display_name": "x", "language": "python"}
    (folder / "kernels" / "python3" / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")


def test_refresh_executes_in_the_chapters_folder_with_one_thread_and_this_python(
    tmp_path, tmp_path_factory, monkeypatch
):
    elsewhere = tmp_path_factory.mktemp("jupyter")
    install_kernel(elsewhere, "/somewhere/else/python")
    monkeypatch.setenv("JUPYTER_PATH", str(elsewhere))
    program = "import os, sys\nprint(os.environ['OPENBLAS_NUM_THREADS'], os.path.basename(os.getcwd()))\nsys.executable"
    path = write(tmp_path / "01_a.ipynb", program, "print(1)\nprint(2, end='')\nprint('3')\n4")
    refresh(path)
    first, second = nbformat.read(path, as_version=4).cells
    assert first.outputs[0].text == f"1 {tmp_path.name}\n"
    assert first.outputs[1].data["text/plain"] == repr(sys.executable)
    assert [output.output_type for output in second.outputs] == ["stream", "execute_result"]
    assert second.outputs[0].text == "1\n23\n" and second.outputs[1].execution_count == 2
    before = path.read_bytes()
    refresh(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("1 / 0", r"cell 2 \(1 / 0\) raised ZeroDivisionError: division by zero"),
        ("import sys; print('noise', file=sys.stderr)", "cell 2 writes to stderr: noise"),
        ("import os; os._exit(1)", "the kernel ended"),
    ],
)
def test_refresh_refuses_and_leaves_the_file(tmp_path, source, words):
    path = write(tmp_path / "01_a.ipynb", "1", source)
    before = path.read_bytes()
    with pytest.raises(RefreshError, match=words):
        refresh(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_an_expected_exception_is_stored(tmp_path):
    path = write(tmp_path / "01_a.ipynb", "1 / 0")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].metadata["tags"] = ["raises-exception"]
    nbformat.write(notebook, path)
    refresh(path)
    assert nbformat.read(path, as_version=4).cells[0].outputs[0].ename == "ZeroDivisionError"


def test_normal_form():
    noisy = {"execution": {"iopub.status.busy": "2026-01-01T00:00:00Z"}, "scrolled": True, "tags": ["keep"]}
    streams = [new_output("stream", name=name, text=text) for name, text in (("stdout", "a"), ("stdout", "b"))]
    cells = [
        new_markdown_cell("x"),
        new_code_cell("1", metadata=noisy, outputs=streams, execution_count=7),
        new_code_cell("2", outputs=[new_output("execute_result", {"text/plain": "2"}, execution_count=9)]),
    ]
    notebook = new_notebook(
        cells=cells, metadata={"language_info": {"name": "python", "version": "3.11.2"}, "course": {}}
    )
    normalise(notebook)
    assert [cell.id for cell in notebook.cells] == ["cell-001", "cell-002", "cell-003"]
    assert notebook.cells[1].metadata == {"tags": ["keep"]} and notebook.cells[1].outputs[0].text == "ab"
    assert [cell.execution_count for cell in notebook.cells[1:]] == [1, 2]
    assert notebook.cells[2].outputs[0].execution_count == 2
    assert notebook.metadata.language_info.get("version") is None and "course" in notebook.metadata
    nbformat.validate(notebook)


def test_large_pictures_are_reported():
    def picture(size):
        data = {"image/png": base64.b64encode(bytes(size)).decode()}
        return new_code_cell("", outputs=[new_output("display_data", data)])

    notebook = new_notebook(cells=[picture(149_000), picture(151_000)])
    assert large_pictures(notebook) == ["cell 2: a picture of 151 kB, at most 150 kB: lower its dpi"]


# The example chapter in a kernel, as a reader runs it


STUBBORN_LOOP = """def attend(query, key):
    while True:
        try:
            sum(range(9))
        except:
            pass"""


def in_kernel(tmp_path, folder, *sources):
    """Run cells in a kernel whose project lies in `tmp_path`; return the text of each cell's outputs."""
    setup = (
        "import sys, importlib, pathlib\nfrom tests.course import example\n"
        "sys.modules['src.course.exercises.ch99'] = example\n"
        f"importlib.import_module('src.course.progress').WORK = pathlib.Path({str(tmp_path / 'work')!r})\n"
        "from src.course import check, hint, progress"
    )
    path = write(
        tmp_path / folder / "99_example.ipynb", f"import sys; sys.path.insert(0, {str(ROOT)!r})", setup, *sources
    )
    refresh(path)
    cells = nbformat.read(path, as_version=4).cells[2:]
    return ["".join(o.get("text", o.get("data", {}).get("text/plain", "")) for o in cell.outputs) for cell in cells]


def test_checks_in_a_kernel(tmp_path):
    (tmp_path / "work").mkdir()
    texts = in_kernel(
        tmp_path,
        "work",
        STUBBORN_LOOP,
        'check("ch99.attend", attend)',
        "def attend(query, key):\n    x = query\n    return x.nothing",
        'check("ch99.attend", attend)',
        example.weights_by_hand.stub,
        'weights = ["1/7", "2/7", "4/7"]\ncheck("ch99.weights", weights)',
        example.SOLUTIONS["ch99.attend"].replace("Softmax", "example.Softmax"),
        "progress().records",
    )
    assert "it still runs after 2 seconds for the input [[1, 0]], [[1, 0], [0, 1]]: does its loop end?" in texts[1]
    assert "AttributeError in line 3 of its cell for the input" in texts[3]
    assert texts[4].startswith("ch99.weights: not attempted yet.")
    assert texts[5].startswith("ch99.weights: right: the weights sum to 1; the three weights (3 of 3 points)")
    assert texts[6].startswith("ch99.attend: right")
    assert texts[7] == "{'ch99.attend': {'of': 2, 'points': 0}, 'ch99.weights': {'of': 3, 'points': 3}}"


def test_the_books_own_chapters_record_nothing(tmp_path):
    for folder in ("work", "chapters"):
        (tmp_path / folder).mkdir()
    (text,) = in_kernel(tmp_path, "chapters", 'check("ch99.weights", ["1/7", "2/7", "4/7"])')
    assert ": right: " in text and not list((tmp_path / "work").iterdir())


# Generated cells


def test_the_head_of_a_chapter():
    text = render_head(example.COURSE, "99_example.ipynb")
    for part in ("- build them\n", "5 minutes to read, 10 for", "nothing at all", "you know it", "open 99`"):
        assert part in text
    assert "{download}`this notebook <99_example.ipynb>`" in text


CARD = {"card": 3, "skip_when": "you know it", "used_in": "chapter 7"}


def test_the_head_of_a_card():
    text = render("head", new_notebook(metadata={"course": CARD}), "03_card.ipynb")
    for part in ("Ten minutes", "**Skip it** if you know it.", "**Used in** chapter 7.", "open warmup3`"):
        assert part in text
    assert "{download}`this notebook <03_card.ipynb>`" in text
    with pytest.raises(ValueError, match=r"03_card\.ipynb: .* lacks skip_when, used_in"):
        render_head({"card": 3}, "03_card.ipynb")


def test_bad_chapter_metadata_is_refused():
    with pytest.raises(ValueError, match="lacks needs, skip_when"):
        render_head({k: v for k, v in example.COURSE.items() if k not in ("needs", "skip_when")}, "a.ipynb")
    with pytest.raises(ValueError, match="three outcomes are wanted, got 1"):
        render_head({**example.COURSE, "outcomes": ["one"]}, "a.ipynb")
    with pytest.raises(ValueError, match="got 'foot'"):
        render("foot", new_notebook(), "a.ipynb")


# The doctor


def test_doctor_finds_each_thing(tmp_path, monkeypatch):
    assert not doctor.python_version((3, 12)).fix
    assert doctor.python_version((3, 10)).fatal and doctor.python_version((3, 10)).fix
    assert doctor.python_version((3, 14)).fix and not doctor.python_version((3, 14)).fatal

    pins = tmp_path / "requirements.txt"
    pins.write_text('-e .\n# a\nnumpy==1.0\nno-such-thing==1\nnot-here==2 ; sys_platform == "x"\n', encoding="utf-8")
    wrong, missing = doctor.packages(pins)
    assert "numpy is" in wrong.text and "pins 1.0" in wrong.text and wrong.fix and not wrong.fatal
    assert missing.text == "no-such-thing is not installed" and missing.fatal
    assert doctor.packages(tmp_path / "none.txt")[0].fatal
    pins.write_text(f"numpy=={doctor.version('numpy')}\n", encoding="utf-8")
    assert not doctor.packages(pins)[0].fix

    pins.write_text("torch==2.13.0\n", encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr(doctor, "version", lambda name: "2.13.0+cpu")
        assert not doctor.packages(pins)[0].fix

    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    assert not doctor.blas_threads().fix
    for name in doctor.ONE_THREAD:
        monkeypatch.setenv(name, "2")
    assert doctor.blas_threads().fix

    monkeypatch.setenv("COURSE_CACHE", str(tmp_path))
    assert doctor.corpus(tmp_path).fix
    (tmp_path / "shakespeare.txt").touch()
    assert not doctor.corpus(tmp_path).fix


@pytest.mark.parametrize(("cuda", "is_noted"), [("None", False), ("'12.8'", True)])
def test_doctor_sees_a_cuda_build(tmp_path, monkeypatch, cuda, is_noted):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    (tmp_path / "torch" / "version.py").write_text(f"cuda: Optional[str] = {cuda}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert bool(doctor.cuda_build().fix) is is_noted


def test_doctor_sees_a_foreign_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    for program, is_wrong in (("/somewhere/else/python", True), (sys.executable, False), ("python", False)):
        install_kernel(tmp_path, program)
        assert doctor.kernel().fatal is is_wrong


def test_doctor_runs_where_nothing_is_installed():
    """Without site-packages: no NumPy, no Jupyter."""
    command = [sys.executable, "-S", "-m", "src.course", "doctor"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == ""
    assert "wrong  numpy is not installed" in done.stdout and "Jupyter is not installed" in done.stdout


def test_the_package_loads_no_pictures_and_no_oracle():
    program = (
        "import sys, src.course; print([name for name in ('matplotlib', 'torch', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_package_gives_functions_whatever_was_imported_before():
    import src.course

    for name in ("check", "progress"):
        importlib.import_module(f"src.course.{name}")
    for name in src.course.__all__:
        assert callable(getattr(src.course, name)), name
    with pytest.raises(AttributeError, match=r"'src\.course' has no attribute 'chekc'"):
        src.course.chekc  # noqa: B018


# Commands


def test_commands(root, monkeypatch, capsys):
    module = importlib.import_module("src.course.notebooks")
    monkeypatch.setattr(module.open_copy, "__defaults__", (root,))
    monkeypatch.setattr(module.reset_copy, "__defaults__", (input, root))
    monkeypatch.setattr(module.find_chapter, "__defaults__", (root,))
    assert main(["open", "5", "--copy-only"]) == 0
    assert main(["open", "5", "--copy-only"]) == 0
    assert main(["reset", "5", "--yes"]) == 0
    monkeypatch.setattr(sys, "stdin", open(Path(root / "chapters" / "glossary.md"), encoding="utf-8"))  # noqa: SIM115
    assert main(["reset", "5"]) == 0  # an empty answer: nobody is there
    assert main(["refresh", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "work/05_five.ipynb is new.",
        "work/05_five.ipynb is the copy you have.",
        "A fresh copy is in work/. Yours is work/backup/05_five-1.ipynb.",
    ]
    assert lines[3].endswith("Nothing was replaced.") and lines[4] == "05_five.ipynb: executed and stored"
    assert main(["open", "6", "--copy-only"]) == 1
    assert main(["refresh"]) == 1
    assert main(["refresh", "5", "--all"]) == 1
    assert "chapters with a notebook: 5, 12" in capsys.readouterr().err
