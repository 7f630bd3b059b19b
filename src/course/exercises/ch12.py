"""The exercises of chapter 12: tokens."""

import codecs
import math
from collections import Counter
from itertools import pairwise

from src.course.compare import choose, compare, show, to_array
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer
from src.gpt import BytePairTokenizer, merge_pair

# Two merges by hand

WORD = "abababcabab"


def _texts(value, name):
    """A list of tokens as the reader wrote it."""
    if not isinstance(value, list | tuple) or not all(isinstance(token, str) for token in value):
        raise Wrong(f'{name} is a list of texts, as in ["ab", "c"]')
    return [token.strip() for token in value]


def _parts(answer):
    if not isinstance(answer, list | tuple) or len(answer) != 3:
        raise Wrong("give three things: the first token that is made, the second, and the list of tokens")
    return answer


def _refuse_names(*tokens):
    """The page writes Z, Y and X for the tokens of its example."""
    named = [token for token in tokens if token != token.lower()]
    if named:
        raise Wrong(f"{named[0]!r} has a name in it, such as Z on the page: write out the characters it stands for")


def first_merge(answer):
    first = str(_parts(answer)[0]).strip()
    _refuse_names(first)
    if first == "ba":
        return "the first token is not 'ba': count how often each pair of neighbours occurs"
    if len(first) != 2 or first not in WORD:
        return f"the first token is {first!r}: a merge joins two neighbours, here two characters"
    return None if first == "ab" else f"the first token is {first!r}, and another pair occurs more often"


def second_merge(answer):
    second = str(_parts(answer)[1]).strip()
    _refuse_names(second)
    others = {
        "ba": "'ba' is counted in the text before the first merge: after it no b stands alone",
        "abc": "'abc' is made of neighbours that meet only once",
        "cab": "'cab' is made of neighbours that meet only once",
        "aba": "'aba' is made of neighbours that do not meet: no a stands alone after the first merge",
        "bab": "'bab' is made of neighbours that do not meet: no b stands alone after the first merge",
        "ababab": "'ababab' is three tokens in one step: a merge joins two",
    }
    return choose(second, "abab", others)


def tokens_after_two(answer):
    tokens = _texts(_parts(answer)[2], "tokens")
    _refuse_names(*tokens)
    if "".join(tokens) != WORD:
        return f"your tokens put together give {''.join(tokens)!r}, which is not the text"
    if tokens == ["ab", "ab", "ab", "c", "ab", "ab"]:
        return "these are the tokens after the first merge: the second joins some of them"
    if tokens == ["ab", "abab", "c", "abab"]:
        return "the second merge was made from the right: it goes from the left"
    if tokens == ["ababab", "c", "abab"]:
        return "three neighbours became one token: a merge joins two and then looks at what follows"
    return None if tokens == ["abab", "ab", "c", "abab"] else f"{len(tokens)} tokens, cut in other places"


merges = Exercise(
    id="ch12.merges",
    title="Two merges by hand",
    kind="by hand",
    stub=(
        'first = ...  # the token that the first merge makes, as in "xy"\n'
        "second = ...  # the token that the second merge makes\n"
        'tokens = ...  # all tokens of the text after it, as in ["xy", "z"]\n\n'
        'check("ch12.merges", (first, second, tokens))'
    ),
    properties=[
        Property("the first merge", first_merge),
        Property("the second merge", second_merge),
        Property("the tokens after both", tokens_after_two, points=2),
    ],
    hints=[
        Hint("Write all ten pairs of neighbours in a row and count: only four different pairs occur."),
        Hint("After the first merge write X for the new token: XXXcXX. Count the pairs again."),
        Hint(
            "XX becomes Y, from the left: YXcY. In full:",
            code='("ab", "abab", ["abab", "ab", "c", "abab"])',
            answer=("ab", "abab", ["abab", "ab", "c", "abab"]),
        ),
    ],
    wrong=[
        WrongAnswer(("ba", "aba", ["a", "ba", "ba", "b", "c", "a", "ba", "b"]), contains="count how often each pair"),
        WrongAnswer(("abab", "ab", ["abab", "ab", "c", "abab"]), contains="here two characters"),
        WrongAnswer(("Z", "Y", ["Y", "Z", "c", "Y"]), contains="'Z' has a name in it"),
        WrongAnswer(("ab", "ZZ", ["Y", "Z", "c", "Y"]), contains="'ZZ' has a name in it"),
        WrongAnswer(("ab", "abab", ["Y", "X", "c", "Y"]), contains="'Y' has a name in it"),
        WrongAnswer(("bc", "ab", ["ab", "ab", "a", "bc", "ab", "ab"]), contains="another pair occurs more often"),
        WrongAnswer(("ab", "ba", ["ab", "ab", "ab", "c", "ab", "ab"]), contains="before the first merge"),
        WrongAnswer(("ab", "ababab", ["ababab", "c", "ab", "ab"]), contains="three tokens in one step"),
        WrongAnswer(("ab", "abab", ["ab", "ab", "ab", "c", "ab", "ab"]), contains="after the first merge: the second"),
        WrongAnswer(("ab", "abab", ["ab", "abab", "c", "abab"]), contains="from the right"),
        WrongAnswer(("ab", "abab", ["ababab", "c", "abab"]), contains="looks at what follows"),
        WrongAnswer(("ab", "abab", ["abab", "ab", "abab"]), contains="is not the text"),
    ],
    explanation="XX counts three times in XXXcXX and is joined only twice: two of the three overlap.",
)

# Bits per character

CHARACTER_LOSS, TOKEN_LOSS, LENGTH = 1.386, 3.119, 2.5
BITS = [CHARACTER_LOSS / math.log(2), TOKEN_LOSS / math.log(2) / LENGTH]


def _bits(answer, place):
    if not isinstance(answer, list | tuple) or len(answer) != 3:
        raise Wrong('give three things: bits per character of A, of B, and "A" or "B"')
    return to_array(answer[place], "bits per character of " + "AB"[place])


def bits_of_characters(answer):
    known = {
        "for A you give the loss as it is, in nats": CHARACTER_LOSS,
        "for A you multiply with ln 2: one nat is more than one bit": CHARACTER_LOSS * math.log(2),
        "for A you divide by 2.5: its tokens are characters": BITS[0] / LENGTH,
    }
    return compare(_bits(answer, 0), BITS[0], 6e-3, "for A, bits per character", known)


def bits_of_tokens(answer):
    known = {
        "for B these are nats per character": TOKEN_LOSS / LENGTH,
        "for B these are bits per token": BITS[1] * LENGTH,
        "for B you multiply with 2.5: a token's surprise is shared by its characters": BITS[1] * LENGTH**2,
        "for B this is the loss as it is, in nats per token": TOKEN_LOSS,
    }
    return compare(_bits(answer, 1), BITS[1], 6e-3, "for B, bits per character", known)


def the_better(answer):
    _bits(answer, 0)
    return choose(answer[2], "b", {"a": "A is not better: its lower loss is per character, the loss of B per token"})


bits = Exercise(
    id="ch12.bits",
    title="Which model is better?",
    kind="by hand",
    stub=(
        "bits_A = ...  # bits per character\nbits_B = ...\n"
        'better = ...  # "A" or "B"\n\ncheck("ch12.bits", (bits_A, bits_B, better))'
    ),
    properties=[
        Property("A in bits per character", bits_of_characters),
        Property("B in bits per character", bits_of_tokens, points=2),
        Property("the better model", the_better),
    ],
    hints=[
        Hint("Both losses are in nats; ln 2 = 0.693 nats are one bit. Per what is each loss counted?"),
        Hint("The 3.119 nats of B are spent on 2.5 characters, on average."),
        Hint(
            "Divide by ln 2 and by the characters per token:",
            code='(1.386 / 0.6931, 3.119 / 0.6931 / 2.5, "B")',
            answer=(2.0, 1.8, "B"),
        ),
    ],
    wrong=[
        WrongAnswer((1.386, 3.119, "A"), contains="for A you give the loss as it is"),
        WrongAnswer((0.961, 2.162, "A"), contains="with ln 2"),
        WrongAnswer((0.8, 1.8, "A"), contains="its tokens are characters"),
        WrongAnswer((2.0, 1.248, "B"), contains="nats per character"),
        WrongAnswer((2.0, 4.5, "A"), contains="bits per token"),
        WrongAnswer((2.0, 11.25, "A"), contains="shared by its characters"),
        WrongAnswer((2.0, 3.119, "A"), contains="nats per token"),
        WrongAnswer((2.0, 1.8, "A"), contains="A is not better"),
    ],
    explanation="Its loss per token is more than twice as high, and it needs a tenth fewer bits for the same text.",
)

# Encode


def _encoded(answer, ids, merges):
    """What the reader's function makes of ids, as a list of whole numbers."""
    given, copy = list(ids), list(merges)
    result = answer(given, copy)
    if given != list(ids) or copy != list(merges):
        raise Wrong("your function changes the list that it was given: make a new one")
    try:
        return [int(token) for token in result]
    except (TypeError, ValueError):
        raise Wrong(f"encode must return a list of ids, yours returns {show(result)}") from None


def _joined(ids, merges):
    for number, pair in enumerate(merges):
        ids = merge_pair(ids, pair, 256 + number)
    return list(ids)


def _expect(answer, ids, merges, known):
    result = _encoded(answer, ids, merges)
    if result == _joined(ids, merges):
        return None
    for message, wrong in known.items():
        if result == wrong:
            return message
    return f"for the ids {list(ids)} and the merges {list(merges)} your function gives {result}"


def one_merge(answer):
    known = {
        "with one merge nothing is joined": [97, 98, 99, 97, 98],
        "only the first place where the pair stands is joined": [256, 99, 97, 98],
        "only the last place where the pair stands is joined": [97, 98, 99, 256],
        "the new id is the number of the merge: ids below 256 are the bytes": [0, 99, 0],
        "the new id is one too high: merges are counted from 0": [257, 99, 257],
    }
    return _expect(answer, [97, 98, 99, 97, 98], [(97, 98)], known)


def several_merges(answer):
    triple = {"[97, 97, 97] has two pairs that overlap: what is joined is used up": [256, 256]}
    known = {
        "the merge that was learned last is tried first": [256, 257],
        "a merge of tokens that earlier merges make is left out": [256, 257, 98],
        "only the first merge is made": [256, 97, 98],
        "a merge that finds nothing ends the work: later ones may find something": [97, 97, 97, 98],
    }
    return (
        _expect(answer, [97, 97, 97], [(97, 97)], triple)
        or _expect(answer, [97, 97, 97, 98], [(97, 97), (97, 98), (256, 257)], known)
        or _expect(answer, [97, 98], [(99, 99), (97, 98)], {"a merge that finds nothing ends the work": [97, 98]})
    )


def order_of_training(answer):
    left = {"the pair further left is joined first, though it was learned later": [257, 99]}
    frequent = {"the pair that is more frequent in this text is joined first": [97, 257, 257]}
    return _expect(answer, [97, 98, 99], [(98, 99), (97, 98)], left) or _expect(
        answer, [97, 98, 99, 98, 99], [(97, 98), (98, 99)], frequent
    )


def a_whole_line(answer):
    text = "she_sells_sea_shells_on_the_sea_shore"
    tokenizer = BytePairTokenizer.train(text, 270)
    ids = list(text.encode("utf-8"))
    wanted, got = tokenizer.encode(text), _encoded(answer, ids, tokenizer.merges)
    if got != wanted:
        return f"of {len(ids)} bytes with 14 merges {len(got)} tokens are left, not those of BytePairTokenizer"
    return None if _encoded(answer, [], tokenizer.merges) == [] else "the empty list does not stay empty"


def encode(ids, merges):
    for number, pair in enumerate(merges):
        ids = merge_pair(ids, pair, 256 + number)
    return ids


def unchanged(ids, merges):
    return ids


def first_place(ids, merges):
    ids = list(ids)
    for number, pair in enumerate(merges):
        for place, found in enumerate(pairwise(ids)):
            if found == pair:
                ids[place : place + 2] = [256 + number]
                break
    return ids


def number_as_id(ids, merges):
    for number, pair in enumerate(merges):
        ids = merge_pair(ids, pair, number)
    return ids


def one_too_high(ids, merges):
    for number, pair in enumerate(merges):
        ids = merge_pair(ids, pair, 257 + number)
    return ids


def overlapping(ids, merges):
    for number, pair in enumerate(merges):
        joined, used = [], False
        for place, token in enumerate(ids):
            if tuple(ids[place : place + 2]) == pair:
                joined.append(256 + number)
                used = True
            elif used:
                used = False
            else:
                joined.append(token)
        ids = joined
    return ids


def last_first(ids, merges):
    for number, pair in reversed(list(enumerate(merges))):
        ids = merge_pair(ids, pair, 256 + number)
    return ids


def only_first(ids, merges):
    return merge_pair(ids, merges[0], 256) if merges else ids


def stops_early(ids, merges):
    for number, pair in enumerate(merges):
        joined = merge_pair(ids, pair, 256 + number)
        if joined == ids:
            break
        ids = joined
    return ids


def leftmost(ids, merges):
    ranks, ids = {pair: number for number, pair in enumerate(merges)}, list(ids)
    while True:
        found = [(place, pair) for place, pair in enumerate(pairwise(ids)) if pair in ranks]
        if not found:
            return ids
        place, pair = found[0]
        ids[place : place + 2] = [256 + ranks[pair]]


def most_frequent(ids, merges):
    ranks = {pair: number for number, pair in enumerate(merges)}
    while True:
        counts = Counter(pair for pair in pairwise(ids) if pair in ranks)
        if not counts:
            return ids
        pair = max(counts, key=lambda pair: (counts[pair], -ranks[pair]))
        ids = merge_pair(ids, pair, 256 + ranks[pair])


def in_place(ids, merges):
    ids[:] = encode(ids, merges)
    return ids


def as_text(ids, merges):
    return ["ab" for _ in encode(ids, merges)]


encoder = Exercise(
    id="ch12.encode",
    title="Encode a new text",
    kind="build",
    stub=(
        'def encode(ids, merges):  # two lists; returns a new list of ids\n    ...\n\n\ncheck("ch12.encode", encode)'
    ),
    properties=[
        Property("one merge", one_merge),
        Property("several merges", several_merges),
        Property("the order of training", order_of_training, points=2),
        Property("a whole line", a_whole_line),
    ],
    hints=[
        Hint("Training made the merges one after the other, each in the whole text. Do the same with this text."),
        Hint(
            "One merge is a call of `merge_pair`, which gives a new list. Merge number n, from 0, makes the id 256 + n."
        ),
        Hint(
            "A loop over enumerate(merges), and in it",
            code="ids = merge_pair(ids, pair, 256 + number)",
            answer=encode,
        ),
    ],
    wrong=[
        WrongAnswer(unchanged, contains="nothing is joined"),
        WrongAnswer(first_place, contains="only the first place"),
        WrongAnswer(number_as_id, contains="the number of the merge"),
        WrongAnswer(one_too_high, contains="one too high"),
        WrongAnswer(overlapping, contains="used up"),
        WrongAnswer(last_first, contains="learned last is tried first"),
        WrongAnswer(only_first, contains="only the first merge is made"),
        WrongAnswer(stops_early, contains="finds nothing ends the work"),
        WrongAnswer(leftmost, contains="further left"),
        WrongAnswer(most_frequent, contains="more frequent in this text"),
        WrongAnswer(in_place, contains="changes the list"),
        WrongAnswer(as_text, contains="must return a list of ids"),
    ],
    explanation="The order is part of the tokenizer: a file with the same merges in another order is another one.",
)

# Text that arrives token by token

BYTES = [bytes([value]) for value in range(256)]
BROKEN = "\ufffd"  # what stands for bytes that are no UTF-8


def _streamed(answer, text, symbols=BYTES, ids=None):
    ids = list(text.encode("utf-8")) if ids is None else ids
    pieces = answer(list(ids), list(symbols))
    try:
        pieces = list(pieces)
    except TypeError:
        raise Wrong(f"stream must return a list of texts, yours returns {show(pieces)}") from None
    if not all(isinstance(piece, str) for piece in pieces):
        raise Wrong("every piece must be a text: bytes become one with .decode")
    if len(pieces) != len(ids):
        raise Wrong(f"{len(ids)} ids give {len(pieces)} pieces: one for each id is wanted, if need be an empty one")
    return pieces


def plain_letters(answer):
    pieces = _streamed(answer, "so")
    joined = "".join(pieces)
    if joined == "sso":
        return "'so' is printed as 'sso': what was printed already must not be held any longer"
    if joined != "so":
        return f"'so' is printed as {joined!r}"
    return None if pieces == ["s", "o"] else "'so' comes late: print what is whole as soon as it is"


def whole_characters(answer):
    pieces = _streamed(answer, "é🙂")
    joined = "".join(pieces)
    if BROKEN in joined:
        return f"{joined.count(BROKEN)} times the sign for broken bytes: a part of a character is decoded by itself"
    if joined == "":
        return "é and the face are lost: bytes that are not yet a character must be kept, not ignored"
    if joined == "é🙂".encode().decode("latin-1"):
        return "each byte became a character: latin-1 is another encoding than UTF-8"
    if joined != "é🙂":
        return f"é and the face give a text of {len(joined)} characters, and not these two"
    cut = _streamed(answer, "aé", [*BYTES, b"a\xc3"], [256, 0xA9])
    return None if "".join(cut) == "aé" else "a token that ends in the middle of é breaks it"


def at_once(answer):
    pieces, wanted = _streamed(answer, "né!"), ["n", "", "é", "!"]
    late = [place for place in range(4) if pieces[place] != wanted[place]]
    if not late:
        return before_a_part(answer)
    return f"in 'né!' your piece {late[0]}, counted from 0, is {pieces[late[0]]!r}: print what is whole at once"


def before_a_part(answer):
    """A token of an a and the first byte of ï."""
    pieces = _streamed(answer, "caïman", [*BYTES, b"a\xc3"], [*b"c", 256, 0xAF, *b"man"])
    if pieces == [*"caïman"]:
        return None
    where = "in 'caïman', with an a and half of ï in one token,"
    if pieces == ["c", "", "aï", *"man"]:
        return f"{where} the a waits for ï: hold back only the bytes that are no character yet"
    return f"{where} your pieces are {pieces}"


def a_stray_byte(answer):
    """A byte that no character holds, among plain letters."""
    pieces = _streamed(answer, "", ids=[0x61, 0xFF, 0x62, 0x63, 0x64])
    if pieces == ["a", BROKEN, "b", "c", "d"]:
        return None
    letters = "".join(pieces).replace(BROKEN, "")
    where = "in the bytes 61 ff 62 63 64 (hex), of which ff can be in no character,"
    if letters == "abcd" and len("".join(pieces)) == 4:
        return f"{where} ff is not shown: print the sign for broken bytes in its place"
    if any(letters.count(letter) > 1 for letter in letters):
        return f"{where} a letter is printed twice: count the bytes that are used up, not those of the text"
    if not letters.endswith("d"):
        return f"{where} it waits for more behind ff for ever: only bytes that may still become a character wait"
    return f"{where} your pieces are {pieces}"


def stream(ids, symbols):
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return [decoder.decode(symbols[i]) for i in ids]


def keeps_the_beginning(ids, symbols):
    pieces, held = [], b""
    for i in ids:
        piece, used = codecs.utf_8_decode(held + symbols[i], "replace")
        held = (held + symbols[i])[used:]
        pieces.append(piece)
    return pieces


def loses_the_stray(ids, symbols):
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    return [decoder.decode(symbols[i]) for i in ids]


def waits_for_ever(ids, symbols):
    pieces, held = [], b""
    for i in ids:
        held += symbols[i]
        try:
            whole = len(held.decode("utf-8").encode("utf-8"))
        except UnicodeDecodeError as error:
            whole = error.start
        pieces.append(held[:whole].decode("utf-8"))
        held = held[whole:]
    return pieces


def keeps_the_rest(ids, symbols):
    pieces, held = [], b""
    for token in ids:
        held += symbols[token]
        pieces.append(held.decode("utf-8", errors="ignore"))
        held = held[len(pieces[-1].encode("utf-8")) :]
    return pieces


def holds_all(ids, symbols):
    pieces, held = [], b""
    for token in ids:
        held += symbols[token]
        try:
            pieces.append(held.decode("utf-8"))
            held = b""
        except UnicodeDecodeError:
            pieces.append("")
    return pieces


def one_by_one(ids, symbols):
    return [symbols[token].decode("utf-8", errors="replace") for token in ids]


def ignoring(ids, symbols):
    return [symbols[token].decode("utf-8", errors="ignore") for token in ids]


def latin(ids, symbols):
    return [symbols[token].decode("latin-1") for token in ids]


def at_the_end(ids, symbols):
    text = b"".join(symbols[token] for token in ids).decode("utf-8", errors="replace")
    return [*[""] * (len(ids) - 1), text] if ids else []


def never_empties(ids, symbols):
    pieces, held = [], b""
    for token in ids:
        held += symbols[token]
        pieces.append(held.decode("utf-8", errors="ignore"))
    return pieces


def waits_for_a_letter(ids, symbols):
    pieces, held = [], b""
    for place, token in enumerate(ids):
        held += symbols[token]
        whole = held[-1] < 128 or place == len(ids) - 1
        pieces.append(held.decode("utf-8", errors="replace") if whole else "")
        held = b"" if whole else held
    return pieces


def fewer_pieces(ids, symbols):
    return [piece for piece in stream(ids, symbols) if piece]


def as_bytes(ids, symbols):
    return [symbols[token] for token in ids]


bug = Exercise(
    id="ch12.bug",
    title="Letter by letter",
    kind="find the bug",
    stub='stream = ...  # your function, mended from broken_stream\n\ncheck("ch12.bug", stream)',
    properties=[
        Property("plain letters", plain_letters),
        Property("characters of several bytes", whole_characters, points=2),
        Property("each character at once", at_once),
        Property("bytes of no character", a_stray_byte),
    ],
    hints=[
        Hint("Decode é, two bytes: what do the first byte alone and the second alone give? And both together?"),
        Hint(
            "Keep bytes that are the beginning of a character, and put them in front of the next token's. Nothing else "
            "waits: a byte that can be in no character becomes `�` at once, or it stays in the way of all that follow.",
            answer=keeps_the_beginning,
        ),
        Hint(
            "Python has decoders that remember such a beginning. One is made by a class, which "
            '`getincrementaldecoder("utf-8")` of the module `codecs` returns; give `"replace"` to the class. '
            "With one `decoder` for all tokens, a piece is",
            code="decoder.decode(symbols[i])",
            answer=stream,
        ),
    ],
    wrong=[
        WrongAnswer(one_by_one, contains="is decoded by itself"),
        WrongAnswer(ignoring, contains="not ignored"),
        WrongAnswer(latin, contains="another encoding"),
        WrongAnswer(at_the_end, contains="comes late"),
        WrongAnswer(never_empties, contains="held any longer"),
        WrongAnswer(fewer_pieces, contains="one for each id is wanted"),
        WrongAnswer(as_bytes, contains="bytes become one"),
        WrongAnswer(holds_all, contains="the a waits"),
        WrongAnswer(waits_for_a_letter, contains="is whole at once"),
        WrongAnswer(keeps_the_rest, contains="a letter is printed twice"),
        WrongAnswer(loses_the_stray, contains="ff is not shown"),
        WrongAnswer(waits_for_ever, contains="waits for more behind ff"),
    ],
    explanation="Between two tokens a text need not be whole characters: keep the rest until the next one comes.",
)

EXERCISES = [merges, bits, encoder, bug]
