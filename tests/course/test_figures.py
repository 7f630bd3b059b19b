"""Figures: named axes, honest weights, legible labels, and exactly one picture a cell."""

import io
import subprocess
import sys
import warnings

import matplotlib
import matplotlib.image
import matplotlib.pyplot as plt
import nbclient
import nbformat
import numpy as np
import pytest
import torch
from matplotlib.text import Text

from src.course.figures import attention_heatmap, curves, heatmap

THIRDS = np.full((3, 3), 1 / 3)
CAUSAL = np.tril(np.ones((3, 3), bool))
AVERAGES = CAUSAL / CAUSAL.sum(axis=1, keepdims=True)


class Holder:
    """What a figure needs of the engine's tensor: numbers in `.data`."""

    def __init__(self, data):
        self.data = data


def cells(axes):
    return axes.collections[0]


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def texts(axes):
    return [text.get_text() for text in axes.texts]


def colours(axes, values):
    """The colours that the axes give to values."""
    return cells(axes).cmap(cells(axes).norm(values))


def test_C14_rows_are_queries_and_columns_are_keys():
    axes = attention_heatmap([[0.25, 0.75, 0], [1, 0, 0]], "abc", queries=["who", "what"]).axes[0]
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("query", "key")
    assert labels(axes.yaxis) == ["who", "what"]
    assert labels(axes.xaxis) == ["a", "b", "c"]
    assert axes.get_ylim() == (2, 0), "the first query is the upper row"
    np.testing.assert_array_equal(cells(axes).get_array(), [[0.25, 0.75, 0], [1, 0, 0]])
    assert texts(axes) == ["0.25", "0.75", "0.00", "1.00", "0.00", "0.00"]


def test_C14_weights_after_dropout_are_refused():
    with pytest.raises(
        ValueError, match=r"rows sum to 1\.111: pass the weights before dropout \(row 1 should sum to 1\)"
    ):
        attention_heatmap([[1, 0], [1 / 0.9, 0]], "ab")


def test_C14_a_softmax_over_the_queries_is_named():
    with pytest.raises(ValueError, match=r"rows sum to 1\.7.*softmax ran over the queries"):
        attention_heatmap([[0.9, 0.8], [0.1, 0.2]], "ab")


@pytest.mark.parametrize("error", [-0.01, 0.01])
def test_C14_one_percent_is_refused_and_rounding_is_not(error):
    attention_heatmap(THIRDS.round(4), "abc")
    with pytest.raises(ValueError, match="rows sum to"):
        attention_heatmap(THIRDS + error / 3, "abc")


def test_scores_passed_as_weights_are_refused():
    with pytest.raises(ValueError, match=r"got -1\.000: draw raw scores with kind=\"scores\""):
        attention_heatmap([[2.0, -1.0], [0.0, 1.0]], "ab")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(bad):
    with pytest.raises(ValueError, match="weights: 1 of 4 numbers are NaN or infinite"):
        attention_heatmap([[1.0, 0.0], [bad, 1.0]], "ab")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_may_be_minus_infinity_and_nothing_else(bad):
    with pytest.raises(ValueError, match="scores: 1 of 3 numbers"):
        attention_heatmap([[1.0, -np.inf], [bad, 1.0]], "ab", kind="scores")


def test_masked_entries_are_empty_and_hatched():
    axes = attention_heatmap(AVERAGES, "abc", mask=CAUSAL).axes[0]
    np.testing.assert_array_equal(np.ma.getmaskarray(cells(axes).get_array()), ~CAUSAL)
    assert axes.patch.get_hatch() == "////"
    assert texts(axes) == ["1.00", "0.50", "0.50", "0.33", "0.33", "0.33"]
    assert attention_heatmap(THIRDS, "abc").axes[0].patch.get_hatch() is None


def test_minus_infinity_in_scores_is_a_mask():
    scores = np.where(CAUSAL, [[1.0, 0, 0], [-2, 0, 0], [0, 3, 0]], -np.inf)
    axes = attention_heatmap(scores, "abc", kind="scores").axes[0]
    np.testing.assert_array_equal(np.ma.getmaskarray(cells(axes).get_array()), ~CAUSAL)
    assert cells(axes).get_clim() == (-3, 3)


def test_a_weight_on_a_masked_key_is_not_hidden():
    with pytest.raises(ValueError, match=r"a masked key has the weight 0\.333, not 0"):
        attention_heatmap(THIRDS, "abc", mask=CAUSAL)


def test_a_row_that_may_attend_to_nothing_sums_to_zero():
    mask = np.array([[True, True], [False, False]])
    attention_heatmap([[0.5, 0.5], [0, 0]], "ab", mask=mask)
    with pytest.raises(ValueError, match=r"rows sum to 0\.000"):
        attention_heatmap([[0.5, 0.5], [0, 0]], "ab")


def test_a_padding_mask_of_one_row_covers_all_queries():
    axes = attention_heatmap([[0.5, 0.5, 0]] * 3, "abc", mask=np.array([[True, True, False]])).axes[0]
    assert np.ma.getmaskarray(cells(axes).get_array()).sum(axis=0).tolist() == [0, 0, 3]


@pytest.mark.parametrize("mask", [CAUSAL.astype(int), CAUSAL[:, :1], CAUSAL[:2], CAUSAL[0], np.zeros((3, 3))])
def test_other_masks_are_refused(mask):
    with pytest.raises(ValueError, match=r"mask must be bool \(True = may attend\), \(3, 3\) or \(1, 3\)"):
        attention_heatmap(THIRDS, "abc", mask=mask)


def test_scores_and_signed_values_have_a_diverging_map_centred_at_zero():
    for figure in (
        attention_heatmap([[1.0, -4.0], [0.0, 2.0]], "ab", kind="scores"),
        heatmap([[4.0, -1.0], [0.0, 2.0]]),
        heatmap([[4.0, 1.0], [0.0, 2.0]], signed=True, limits=(0, 4)),
    ):
        axes = figure.axes[0]
        assert cells(axes).get_clim() == (-4, 4)
        negative, zero, positive = colours(axes, np.array([-4.0, 0.0, 4.0]))
        assert zero[:3].min() > 0.9, "zero is nearly white"
        assert negative[2] > 2 * negative[0] and positive[0] > 2 * positive[2], "blue below, red above"


def test_weights_and_unsigned_values_have_viridis_from_zero():
    assert cells(attention_heatmap(THIRDS, "abc").axes[0]).get_clim() == (0, 1)
    assert cells(attention_heatmap(THIRDS, "abc", limits=(0, 0.5)).axes[0]).get_clim() == (0, 0.5)
    axes = heatmap([[4, 1], [3, 2]]).axes[0]
    assert cells(axes).get_clim() == (0, 4)
    assert cells(axes).cmap.name == "viridis"


def test_panels_side_by_side_with_titles_and_one_bar_for_each_kind():
    scores = np.where(CAUSAL, 2.0, -np.inf)
    figure = attention_heatmap([scores, AVERAGES], "abc", kind=["scores", "weights"], mask=CAUSAL, titles=["s", "w"])
    assert [axes.get_title() for axes in figure.axes[:2]] == ["s", "w"]
    assert [axes.get_ylabel() for axes in figure.axes] == ["query", "query", "score", "weight"]
    figure.draw_without_rendering()
    left, right = (axes.get_position() for axes in figure.axes[:2])
    assert left.x1 < right.x0 and left.y0 == pytest.approx(right.y0)


def test_heads_are_panels_that_share_colours():
    figure = heatmap(np.arange(12).reshape(3, 2, 2))
    assert len(figure.axes) == 4, "three panels, one colour bar, no empty frame"
    assert {cells(axes).get_clim() for axes in figure.axes[:3]} == {(0, 11)}


def test_tokens_are_shown_literally():
    figure = attention_heatmap(np.eye(4), [" ", "\n", "$x$", "\t"])
    for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis):
        assert labels(axis) == ["␣", "⏎", "$x$", "⇥"]
        assert not any(label.get_parse_math() for label in axis.get_ticklabels())


def test_every_sign_for_white_space_is_in_the_font():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a missing letter is a warning and a box in the picture
        attention_heatmap(np.eye(3), " \n\t")._repr_png_()


def test_long_labels_stand_upright_and_short_ones_do_not():
    assert {t.get_rotation() for t in attention_heatmap(THIRDS, "abc").axes[0].get_xticklabels()} == {0}
    long = ["international", "understanding", "a"]
    axes = attention_heatmap(THIRDS, long).axes[0]
    assert {t.get_rotation() for t in axes.get_xticklabels()} == {90}
    assert {t.get_rotation() for t in axes.get_yticklabels()} == {0}


def test_positions_without_labels_get_round_numbers():
    axes = heatmap(np.zeros((100, 64)), row_name="position", column_name="channel").axes[0]
    assert labels(axes.yaxis) == ["0", "10", "20", "30", "40", "50", "60", "70", "80", "90"]
    assert labels(axes.xaxis) == ["0", "10", "20", "30", "40", "50", "60"]
    assert axes.get_yticks()[1] == 10.5, "the middle of the cell"
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("position", "channel")


def test_numbers_are_written_where_they_can_be_read():
    assert texts(heatmap([[-0.001, 2], [1, 1 / 7]], decimals=1).axes[0]) == ["0.0", "2.0", "1.0", "0.1"]
    assert texts(heatmap(np.zeros((30, 30))).axes[0]) == []
    assert texts(heatmap([[1, 2]], annotate=False).axes[0]) == []
    assert len(texts(heatmap(np.zeros((14, 14)), annotate=True).axes[0])) == 196
    assert [len(texts(heatmap(np.zeros((count, 7, 7))).axes[0])) for count in (3, 4)] == [49, 0], "150 in a figure"


def test_tensors_and_arrays_draw_the_same():
    expected = attention_heatmap(THIRDS, "abc")._repr_png_()
    for same in (Holder(THIRDS), THIRDS.tolist(), torch.tensor(THIRDS, requires_grad=True), [Holder(THIRDS)]):
        assert attention_heatmap(same, "abc")._repr_png_() == expected


def test_truth_values_are_zeros_and_ones():
    assert texts(heatmap(CAUSAL[:2, :2]).axes[0]) == ["1", "0", "1", "1"]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: attention_heatmap(THIRDS, "ab"), "the query axis has 3 entries but 2 labels"),
        (lambda: attention_heatmap(THIRDS, "ab", queries="abc"), "the key axis has 3 entries but 2 labels"),
        (lambda: attention_heatmap(THIRDS[:2], "abc"), "the query axis has 2 entries but 3 labels"),
        (lambda: attention_heatmap(np.zeros((1, 4, 3, 3)), "abc"), r"got shapes \[\(1, 4, 3, 3\)\]"),
        (lambda: attention_heatmap(np.zeros((0, 3)), "abc"), r"got shapes \[\(0, 3\)\]"),
        (lambda: attention_heatmap([], "abc"), r"got shapes"),
        (lambda: attention_heatmap([THIRDS, THIRDS[:2]], "abc"), r"one shape, got \[\(3, 3\), \(2, 3\)\]"),
        (lambda: attention_heatmap([THIRDS] * 2, "abc", titles=["one"]), "2 matrices but 1 titles"),
        (lambda: attention_heatmap(THIRDS, "abc", kind="score"), r"kind \['score'\]"),
        (lambda: attention_heatmap([THIRDS] * 2, "abc", kind=["scores"]), r"2 matrices, kind \['scores'\]"),
        (lambda: heatmap([1, 2, 3]), r"got shapes \[\(3,\)\]"),
        (lambda: heatmap([[1, np.nan]]), "values: 1 of 2 numbers are NaN or infinite"),
        (lambda: heatmap(THIRDS, row_labels="ab"), "the row axis has 3 entries but 2 labels"),
        (lambda: curves({}), "1 to 8 curves can be told apart, got 0"),
        (lambda: curves({str(i): [1] for i in range(9)}), "got 9"),
        (lambda: curves({"a": ([1, 2], [1, 2, 3])}), r"curve a: wanted a list of 2 numbers, got shape \(3,\)"),
        (lambda: curves({"a": ([1], [1], [1])}), r"curve a: a tuple is \(x, y\), got 3"),
        (lambda: curves({"a": [1, np.nan]}), "curve a: 1 of 2 numbers are NaN"),
        (lambda: curves({"a": [1, 2]}, bands={"b": ([1, 2], [1, 2])}), r"bands \['b'\] have no curve"),
        (lambda: curves({"a": [1, 2]}, bands={"a": ([1], [1])}), "band of a: wanted a list of 2 numbers"),
    ],
)
def test_bad_input_is_refused_with_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_curves_differ_in_colour_line_and_marker():
    figure = curves({f"run {i}": [i, i + 1] for i in range(8)}, xlabel="x", ylabel="y", title="t")
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("x", "y", "t")
    assert len({line.get_color() for line in axes.lines}) == len({line.get_marker() for line in axes.lines}) == 8
    assert all(a.get_linestyle() != b.get_linestyle() for a, b in zip(axes.lines, axes.lines[1:], strict=False))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [f"run {i}" for i in range(8)]


def test_markers_are_few_and_staggered():
    every = [line.get_markevery() for line in curves({"a": np.zeros(80), "b": np.zeros(80)}).axes[0].lines]
    assert every == [(0, 10), (5, 10)]


def test_steps_are_whole_numbers():
    assert all(tick % 1 == 0 for tick in curves({"a": [3, 2, 1]}).axes[0].get_xticks())
    assert any(tick % 1 for tick in curves({"a": ([0, 0.5, 1], [3, 2, 1])}).axes[0].get_xticks())


def test_curves_take_y_or_x_and_y():
    a, b = curves({"a": Holder(np.array([5.0, 4.0])), "b": ([10, 20], [3, 2])}).axes[0].lines
    assert (a.get_xdata().tolist(), a.get_ydata().tolist()) == ([0, 1], [5, 4])
    assert (b.get_xdata().tolist(), b.get_ydata().tolist()) == ([10, 20], [3, 2])


def test_bands_span_low_to_high():
    axes = curves({"a": ([1, 3], [2, 2])}, bands={"a": ([1.5, 1], [2.5, 4])}).axes[0]
    box = axes.collections[0].get_paths()[0].get_extents()
    assert (box.x0, box.x1, box.y0, box.y1) == (1, 3, 1, 4)
    assert axes.collections[0].get_facecolor()[0, :3].tolist() == list(axes.lines[0].get_color())


def test_references_are_lines_whose_labels_do_not_collide():
    axes = curves({"a": [4.0, 2.0]}, references={"ln V": 4.174, "bigram": 2.482, "mine": 2.475}).axes[0]
    assert [line.get_ydata()[0] for line in axes.lines[1:]] == [4.174, 2.482, 2.475]
    starts = {text.get_text().strip(): text.xy for text in axes.texts}  # of the strokes, at the right end of the lines
    assert starts == {"ln V": (1, 4.174), "bigram": (1, 2.482), "mine": (1, 2.475)}
    heights = {text.get_text().strip(): text.xyann[1] for text in axes.texts}
    assert heights["ln V"] == 4.174 and heights["mine"] == 2.475
    axes.figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in axes.texts]  # without the strokes
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def large_figure(number):
    """The largest pictures that the defaults make."""
    rng = np.random.default_rng(0)
    if number == 0:
        weights = rng.dirichlet(np.ones(31), size=(2, 31))
        return attention_heatmap(weights, "But soft, what light through yo", titles=["one", "two"])
    if number == 1:
        return attention_heatmap(rng.dirichlet(np.ones(12), size=12), "to be, or no")
    if number == 2:
        return attention_heatmap(rng.dirichlet(np.ones(6), size=(4, 6)), "to be,", titles=["a", "b", "c", "d"])
    if number == 3:
        return heatmap(rng.normal(size=(128, 64)))
    return curves({f"run {i}": rng.normal(size=2000).cumsum() for i in range(8)}, references={"zero": 0.0})


@pytest.mark.parametrize("number", range(5))
def test_pictures_are_small_white_and_the_same_each_time(number):
    first, second = (large_figure(number)._repr_png_() for _ in range(2))
    assert first == second
    assert len(first) < 150_000
    image = matplotlib.image.imread(io.BytesIO(first))
    assert image.shape[1] <= 1200, "pixels across: fits the page"
    assert (image[[0, 0, -1, -1], [0, -1, 0, -1]] == 1).all(), "white and opaque in the corners"


def test_the_readers_own_settings_neither_matter_nor_change():
    def draw():
        return attention_heatmap(THIRDS, "abc")._repr_png_(), curves({"a": [1, 2]})._repr_png_()

    expected = draw()
    with matplotlib.rc_context({"font.size": 30, "figure.facecolor": "black", "savefig.transparent": True}):
        before = dict(matplotlib.rcParams)
        assert draw() == expected
        assert dict(matplotlib.rcParams) == before


def test_importing_changes_no_setting():
    code = """
import matplotlib
before = dict(matplotlib.rcParams)
import src.course.figures
assert dict(matplotlib.rcParams) == before
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pyplot_holds_no_figure():
    plt.close("all")
    attention_heatmap(THIRDS, "abc")._repr_png_()
    curves({"a": [1, 2]})._repr_png_()
    assert plt.get_fignums() == []


def run_notebook(*sources):
    """Execute the cells in a kernel of this environment and return the outputs of each."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
    return [cell.outputs for cell in notebook.cells]


@pytest.mark.parametrize("backend", ["", "import matplotlib; matplotlib.use('agg')", "%matplotlib inline"])
def test_a_notebook_shows_a_figure_exactly_once(backend):
    call = "attention_heatmap([[1, 0], [0.5, 0.5]], 'ab')"
    setup, shown, hidden, stored, both, mixed = run_notebook(
        f"{backend}\nfrom src.course.figures import attention_heatmap, curves",
        call,
        f"{call};",
        f"figure = {call}",
        "display(figure)\ncurves({'a': [1, 2]})",
        "import matplotlib.pyplot as plt\nfigure\nprint(plt.get_fignums())",
    )
    assert setup == hidden == stored == []
    assert [output.output_type for output in shown] == ["execute_result"]
    assert set(shown[0].data) == {"text/plain", "image/png"}
    assert shown[0].data["text/plain"] == "<Figure size 323x228 with 2 Axes>"
    assert ["image/png" in output.data for output in both] == [True, True]
    assert [output.text for output in mixed] == ["[]\n"]
