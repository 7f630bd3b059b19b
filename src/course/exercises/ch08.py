"""The exercises of chapter 8: positions."""

import numpy as np

from src.core import Tensor, scaled_dot_product_attention
from src.course.compare import compare, show, to_array
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer
from src.gpt import sinusoidal_positions

# Two averages by hand

LAST_ROW = np.array([25, 13, 7, 3]) / 48


def past_sums_to_one(answer):
    total = to_array(answer, "your row").sum()
    if abs(total - 1) < 2e-3:
        return None
    if abs(total - 4) < 8e-3:
        return "your row sums to 4: the second layer divides by the number of its tokens too"
    return f"your row sums to {show(total)}: the weights of an average sum to 1, and so do those of two"


def past_is_right(answer):
    known = {
        "all alike: these are the weights of one layer": [0.25] * 4,
        "d hears itself too: this is the row of three tokens": [11 / 18, 5 / 18, 1 / 9, 0],
        "the right numbers turned round: which token is in the most averages of the first layer?": LAST_ROW[::-1],
    }
    return compare(answer, LAST_ROW, name="your row", known=known)


past = Exercise(
    id="ch08.past",
    title="Two averages by hand",
    kind="by hand",
    stub='row_d = [..., ..., ..., ...]  # of a, b, c, d; fractions may be text: "1/2"\n\ncheck("ch08.past", row_d)',
    properties=[Property("the row sums to 1", past_sums_to_one), Property("the four weights", past_is_right, points=2)],
    hints=[
        Hint("Write what stands at each place after the first layer: a, (a + b)/2, and so on. Then average the four."),
        Hint("b is in the second, third and fourth average, with 1/2, 1/3 and 1/4; divide their sum by 4."),
        Hint(
            "For a the sum is 1 + 1/2 + 1/3 + 1/4 = 25/12. All four:",
            code='["25/48", "13/48", "7/48", "3/48"]',
            answer=LAST_ROW,
        ),
    ],
    wrong=[
        WrongAnswer(["1/4", "1/4", "1/4", "1/4"], contains="weights of one layer"),
        WrongAnswer(["25/12", "13/12", "7/12", "3/12"], contains="sums to 4:"),
        WrongAnswer([25, 13, 7, 3], contains="sums to 48"),
        WrongAnswer(["3/48", "7/48", "13/48", "25/48"], contains="turned round"),
        WrongAnswer(["11/18", "5/18", "1/9", 0], contains="row of three tokens"),
        WrongAnswer([0.5, 0.3, 0.1, 0.1], contains="rounded too early"),
    ],
    explanation="The earlier a token, the more averages of the first layer hold it: that is how two layers tell order.",
)

# Positions of the patches of an image


def image_shape(answer):
    table = to_array(answer(2, 3, 8), "your table")
    if table.shape == (6, 8):
        return None
    if table.shape == (6, 4):
        return "8 channels are wanted, yours has 4: put the two tables side by side, do not add them"
    if table.shape == (2, 3, 8):
        return "your table has the shape (2, 3, 8): patches are tokens, in one row after the other, so it has two axes"
    return f"2 rows of 3 patches and 8 channels make a table (6, 8), yours has the shape {table.shape}"


def image_is_right(answer):
    known = {
        "the halves are swapped: row first, column second": _image_table(2, 3, 8)[:, [4, 5, 6, 7, 0, 1, 2, 3]],
        "you count down the columns: in reading order patch 1 stands right of patch 0": _by_columns(2, 3, 8),
        "you number the patches 0 to 5, so that it matters where a row ends": sinusoidal_positions(6, 8),
        "the waves belong to 8 channels: each half has a table of its own for 4": _cut_waves(2, 3, 8),
    }
    return compare(answer(2, 3, 8), _image_table(2, 3, 8), 1e-5, "your table", known)


def image_other_sizes(answer):
    for rows, columns, size in ((4, 2, 6), (1, 5, 4)):
        problem = compare(answer(rows, columns, size), _image_table(rows, columns, size), 1e-5, "your table")
        if problem:
            return f"for {rows} rows, {columns} columns and {size} channels {problem}"
    return None


def _image_table(rows, columns, size):
    down, across = sinusoidal_positions(rows, size // 2), sinusoidal_positions(columns, size // 2)
    return np.array([np.concatenate([down[r], across[c]]) for r in range(rows) for c in range(columns)])


def _by_columns(rows, columns, size):
    return _image_table(rows, columns, size).reshape(rows, columns, size).swapaxes(0, 1).reshape(-1, size)


def _cut_waves(rows, columns, size):
    down, across = (sinusoidal_positions(count, size)[:, : size // 2] for count in (rows, columns))
    return np.concatenate([np.repeat(down, columns, axis=0), np.tile(across, (rows, 1))], axis=1)


def image_by_divmod(rows, columns, size):
    row, column = np.divmod(np.arange(rows * columns), columns)
    down = sinusoidal_positions(rows, size // 2)
    across = sinusoidal_positions(columns, size // 2)
    return np.concatenate([down[row], across[column]], axis=1)


def image_added(rows, columns, size):
    table = image_by_divmod(rows, columns, size)
    return table[:, : size // 2] + table[:, size // 2 :]


def image_for_six_patches(rows, columns, size):
    return image_by_divmod(2, 3, 8)


image = Exercise(
    id="ch08.image",
    title="Positions of an image",
    kind="build",
    stub=(
        'def image_positions(rows, columns, size):\n    # your code\n    ...\n\n\ncheck("ch08.image", image_positions)'
    ),
    properties=[
        Property("the shape of the table", image_shape),
        Property("2 rows of 3 patches", image_is_right, points=2),
        Property("other sizes", image_other_sizes),
    ],
    hints=[
        Hint("Make two tables, `sinusoidal_positions(rows, size // 2)` and the same for the columns."),
        Hint("Patch n stands in row n // columns and in column n % columns; `np.divmod` gives both at once."),
        Hint(
            "With row and column of each patch, and the tables down and across:",
            code="np.concatenate([down[row], across[column]], axis=1)",
            answer=image_by_divmod,
        ),
    ],
    wrong=[
        WrongAnswer(image_added, contains="do not add them"),
        WrongAnswer(lambda r, c, s: image_by_divmod(r, c, s).reshape(r, c, s), contains="it has two axes"),
        WrongAnswer(
            lambda r, c, s: np.roll(image_by_divmod(r, c, s), s // 2, axis=1), contains="row first, column second"
        ),
        WrongAnswer(_by_columns, contains="count down the columns"),
        WrongAnswer(lambda r, c, s: sinusoidal_positions(r * c, s), contains="where a row ends"),
        WrongAnswer(_cut_waves, contains="belong to 8 channels"),
        WrongAnswer(image_for_six_patches, contains="for 4 rows, 2 columns"),
    ],
    explanation="The dot product of two such rows is a part for how far up or down, plus a part for how far across.",
)

# Look back

BACK = 2  # places
BACK_SIZE = 6


def _moved_rows(answer, steps, size=BACK_SIZE):
    """Rows 4 to 8 of the table times the reader's matrix."""
    matrix = to_array(answer(size, steps), "your matrix")
    if matrix.shape != (size, size):
        raise Wrong(f"for {size} channels the matrix is ({size}, {size}), yours has the shape {matrix.shape}")
    return sinusoidal_positions(9, size)[4:] @ matrix


def back_by_nothing(answer):
    rows = sinusoidal_positions(9, BACK_SIZE)[4:]
    turned = _turn(rows, _frequencies(BACK_SIZE))
    known = {"for no step at all pairs are turned by one step: the angle is steps times a frequency": turned}
    return compare(_moved_rows(answer, 0), rows, 1e-5, "with steps = 0, the row of a place", known)


def back_by_two(answer):
    table = sinusoidal_positions(11, BACK_SIZE)
    rows, pairs = table[4:9], BACK_SIZE // 2
    first_only = rows.copy()
    first_only[:, :2] = table[2:7, :2]
    matrix = to_array(answer(BACK_SIZE, BACK), "your matrix")
    if not np.array_equal(matrix, np.eye(BACK_SIZE)) and matrix.any() and np.isin(matrix, (0, 1)).all():
        return "your matrix moves numbers to other channels, not to other places: turn each pair of channels instead"
    cosine, sine = np.cos(BACK * _frequencies(BACK_SIZE)), np.sin(BACK * _frequencies(BACK_SIZE))
    same_sign = np.empty_like(rows)
    same_sign[:, 0::2] = rows[:, 0::2] * cosine + rows[:, 1::2] * sine
    same_sign[:, 1::2] = rows[:, 1::2] * cosine + rows[:, 0::2] * sine
    halves = np.block([[np.diag(cosine), np.diag(sine)], [-np.diag(sine), np.diag(cosine)]])
    known = {
        "you look ahead: the row of place 4 became that of place 6": table[6:11],
        "nothing moved: steps is not used": rows,
        "only the first pair of channels moved": first_only,
        "every pair is turned by the same angle, but each has a frequency of its own": _turn(
            rows, np.full(pairs, BACK)
        ),
        "the frequencies fall twice too fast: is your index the pair's or the channel's?": _turn(
            rows, BACK * _frequencies(BACK_SIZE) ** 2
        ),
        "the frequencies fall too slowly: pair i has the channels 2i and 2i + 1": _turn(
            rows, BACK * _frequencies(BACK_SIZE) ** 0.5
        ),
        "each number is only made smaller: the other one of its pair is missing": rows * np.repeat(cosine, 2),
        "both sines have the same sign: in sin(a - b) and cos(a - b) they differ": same_sign,
        "all sines are taken to stand before all cosines: the two of a pair are neighbours": rows @ halves,
    }
    return compare(_moved_rows(answer, BACK), table[2:7], 1e-5, "with steps = 2, the row of a place", known)


def back_in_attention(answer):
    """As a query projection it makes each token of the engine's attention take most from the place 3 before it."""
    table = sinusoidal_positions(12, 32)
    query = table @ to_array(answer(32, 3), "your matrix")
    _, weights = scaled_dot_product_attention(Tensor(query), Tensor(table), Tensor(table), causal=True)
    for place in range(3, 12):
        if int(weights.data[place].argmax()) != place - 3:
            return f"with 32 channels and steps = 3, place {place} takes most from {int(weights.data[place].argmax())}"
    return None


def _frequencies(size):
    return 10000.0 ** (-np.arange(0, size, 2) / size)


def _turn(rows, angles):
    sine, cosine = rows[:, 0::2], rows[:, 1::2]
    turned = np.empty_like(rows)
    turned[:, 0::2] = sine * np.cos(angles) - cosine * np.sin(angles)
    turned[:, 1::2] = cosine * np.cos(angles) + sine * np.sin(angles)
    return turned


def look_back(size, steps):
    matrix = np.zeros((size, size))
    for i in range(0, size, 2):
        angle = steps / 10000 ** (i / size)
        matrix[i : i + 2, i : i + 2] = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    return matrix


def back_same_angle(size, steps):
    return _turn(np.eye(size), np.full(size // 2, float(steps)))


def back_twice_too_fast(size, steps):
    return _turn(np.eye(size), steps * _frequencies(size) ** 2)


def back_first_pair(size, steps):
    return _turn(np.eye(size), steps * np.eye(size // 2)[0])


def back_too_slow(size, steps):
    return _turn(np.eye(size), steps * _frequencies(size) ** 0.5)


def back_smaller(size, steps):
    return np.diag(np.repeat(np.cos(steps * _frequencies(size)), 2))


def back_in_halves(size, steps):
    cosine, sine = np.diag(np.cos(steps * _frequencies(size))), np.diag(np.sin(steps * _frequencies(size)))
    return np.block([[cosine, sine], [-sine, cosine]])


def back_same_sign(size, steps):
    matrix = look_back(size, steps)
    return np.where(np.eye(size) == 1, matrix, np.abs(matrix) * np.sign(np.sin(steps)))


back = Exercise(
    id="ch08.back",
    title="A head that looks back",
    kind="build",
    stub='def look_back(size, steps):\n    # your code\n    ...\n\n\ncheck("ch08.back", look_back)',
    properties=[
        Property("no steps change nothing", back_by_nothing),
        Property("two places back", back_by_two, points=2),
        Property("attention goes three places back", back_in_attention),
    ],
    hints=[
        Hint(
            "sin(a - b) = sin a cos b - cos a sin b and cos(a - b) = cos a cos b + sin a sin b. "
            "So a pair (sin a, cos a) times a 2 x 2 matrix is the pair of a - b."
        ),
        Hint(
            "Fill a matrix of zeros with a 2 x 2 block for each pair; for the pair at channel i, b = steps * frequency."
        ),
        Hint(
            "With `angle = steps / 10000 ** (i / size)` for i = 0, 2, 4, ..., the block from i to i + 2 is",
            code="[[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]",
            answer=look_back,
        ),
    ],
    wrong=[
        WrongAnswer(lambda size, steps: look_back(size, steps).T, contains="you look ahead"),
        WrongAnswer(lambda size, steps: np.eye(size), contains="steps is not used"),
        WrongAnswer(back_same_angle, contains="turned by the same angle"),
        WrongAnswer(back_twice_too_fast, contains="twice too fast"),
        WrongAnswer(back_first_pair, contains="only the first pair"),
        WrongAnswer(lambda size, steps: look_back(size, 1), contains="turned by one step"),
        WrongAnswer(back_too_slow, contains="fall too slowly"),
        WrongAnswer(back_smaller, contains="only made smaller"),
        WrongAnswer(back_in_halves, contains="before all cosines"),
        WrongAnswer(back_same_sign, contains="the same sign"),
        WrongAnswer(lambda size, steps: np.eye(size, k=steps), contains="to other channels"),
        WrongAnswer(lambda size, steps: np.eye(2), contains="for 6 channels the matrix is (6, 6)"),
        WrongAnswer(lambda size, steps: np.zeros((size, size)), contains="with steps = 0"),
    ],
    explanation="The same matrix serves every place, so one W_Q can mean 'two places before me' wherever it is used.",
)

# Find the bug


def bug_place_zero(answer):
    """At place 0 all sines are 0 and all cosines 1."""
    known = {
        "at place 0 your table begins with 1: the sine stands first": [1.0, 0, 1, 0, 1, 0],
        "at place 0 the zeros stand in the first half: sine and cosine take turns": [0.0, 0, 0, 1, 1, 1],
    }
    return compare(_table(answer, 3, 6)[0], [0.0, 1, 0, 1, 0, 1], 1e-6, "the row of place 0", known)


def bug_length(answer):
    lengths = np.linalg.norm(_table(answer, 50, 6), axis=1)
    if np.ptp(lengths) < 1e-5:
        return None
    return (
        f"the rows have different lengths, from {show(lengths.min())} to {show(lengths.max())}: which sums must be 1?"
    )


def bug_numbers(answer):
    right = sinusoidal_positions(40, 6)
    columns = np.arange(6) // 2 * 2
    even, places = np.arange(6) % 2 == 0, np.arange(40)[:, None]

    def table(angles):
        return np.where(even, np.sin(angles), np.cos(angles))

    known = {
        "the exponent is doubled: the second pair is far too slow": table(places / 10000 ** (2 * columns / 6)),
        "the exponent is halved: you count pairs, and each pair takes two channels": table(
            places / 10000 ** (columns / 12)
        ),
        "all channels have the same frequency": table(places + 0 * columns),
    }
    return compare(_table(answer, 40, 6), right, 1e-5, "the table for 40 places and 6 channels", known)


def bug_odd_size(answer):
    wanted = sinusoidal_positions(4, 5)
    return compare(_table(answer, 4, 5), wanted, 1e-5, "with 5 channels the table")


def _table(answer, length, size):
    table = to_array(answer(length, size), "your table")
    if table.shape != (length, size):
        raise Wrong(f"for {length} places and {size} channels your table has the shape {table.shape}")
    return table


def _sketch(exponent, sine_first=True):
    """A table of waves whose exponents are made by `exponent(columns, size)`."""

    def table(length, size):
        columns = np.arange(size)
        angles = np.arange(length)[:, None] / 10000 ** exponent(columns, size)
        return np.where((columns % 2 == 0) == sine_first, np.sin(angles), np.cos(angles))

    return table


def mended_waves(length, size):
    columns = np.arange(size)
    angles = np.arange(length)[:, None] / 10000 ** (columns // 2 * 2 / size)
    return np.where(columns % 2 == 0, np.sin(angles), np.cos(angles))


def waves_in_halves(length, size):
    table = mended_waves(length, size)
    return np.concatenate([table[:, 0::2], table[:, 1::2]], axis=1)


def waves_without_odd(length, size):
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(0, size, 2) / size)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, -1)


bug = Exercise(
    id="ch08.bug",
    title="Waves out of step",
    kind="find the bug",
    stub='mended_waves = ...  # your function, mended from broken_waves\n\ncheck("ch08.bug", mended_waves)',
    properties=[
        Property("place 0", bug_place_zero),
        Property("all rows are equally long", bug_length),
        Property("the table", bug_numbers, points=2),
        Property("an odd size", bug_odd_size),
    ],
    hints=[
        Hint("Print the lengths of the rows, `np.linalg.norm(table, axis=1)`. What makes them equal in a right table?"),
        Hint("sin² + cos² = 1 needs a sine and a cosine of the same angle. Print the frequencies of channels 0 to 3."),
        Hint(
            "Channels 2i and 2i + 1 share the exponent 2i / C:",
            code="10000 ** (columns // 2 * 2 / size)",
            answer=mended_waves,
        ),
    ],
    wrong=[
        WrongAnswer(_sketch(lambda columns, size: columns / size), contains="different lengths"),
        WrongAnswer(_sketch(lambda columns, size: columns // 2 * 4 / size), contains="exponent is doubled"),
        WrongAnswer(_sketch(lambda columns, size: columns // 2 / size), contains="exponent is halved"),
        WrongAnswer(_sketch(lambda columns, size: 0.0 * columns), contains="the same frequency"),
        WrongAnswer(_sketch(lambda columns, size: columns // 2 * 2 / size, False), contains="the sine stands first"),
        WrongAnswer(waves_in_halves, contains="take turns"),
        WrongAnswer(waves_without_odd, contains="for 4 places and 5 channels"),
    ],
    explanation="Shapes, range and first row were right: only the length of the rows, or the formula, shows this one.",
)

EXERCISES = [past, image, back, bug]
