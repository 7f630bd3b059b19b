"""Play texts without directions and mark-up: the transformation on small plays, then the real texts."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from src.course.corpora import read_corpus
from src.course.plays import play_text

ROOT = Path(__file__).resolve().parents[2]

# --- From markdown to text, on small plays ---

HEAD = "# A Play\n\n## ACT I\n\n### SCENE I. A street.\n\n"

CASES = {
    "speeches": ("**ANN**  \nWho is  \nthere?\n\n**BEN**  \nI.\n", "ANN:\nWho is\nthere?\n\nBEN:\nI.\n"),
    "direction between speeches": ("**ANN**  \nGo.\n\n_Exit BEN_\n\n**CAT**  \nOh.\n", "ANN:\nGo.\n\nCAT:\nOh.\n"),
    "direction over two lines": ("_Enter ANN, with staves, and other\nweapons_\n\n**ANN**  \nGo.\n", "ANN:\nGo.\n"),
    "speech that goes on after a direction": (
        "**ANN**  \nGo.\n\n_Shouts_\n\nWhat's that?\n",
        "ANN:\nGo.\nWhat's that?\n",
    ),
    "direction that opens a speech": ("**ANN**  \n_\\[Aside]_  \nGo.\n", "ANN:\nGo.\n"),
    "direction inside a speech": ("**ANN**  \nGo.  \n_\\[To BEN]_  \nStay.\n", "ANN:\nGo.\nStay.\n"),
    "direction and speech in one later paragraph": ("**ANN**  \nGo.\n\n_\\[To BEN]_  \nStay.\n", "ANN:\nGo.\nStay.\n"),
    "doubled underscore": ("**ANN**  \n__\\[Awaking]_  \nGo.\n", "ANN:\nGo.\n"),
    "missing underscore": ("**ANN**  \n[Within]_  \nGo.\n", "ANN:\nGo.\n"),
    "starred direction": ("*Enter ANN and \nBEN.*\n\n**ANN**  \n*[Aside.]*  \nGo.\n", "ANN:\nGo.\n"),
    "inline direction in a line": ("**ANN**  \nGo, _kneels_ my lord.\n", "ANN:\nGo, my lord.\n"),
    "words that an editor supplied": (
        "**ANN**  \nAnd _\\[Censorinus,]_  \nso named\n",
        "ANN:\nAnd Censorinus,\nso named\n",
    ),
    "gap marked by an editor": ("**ANN**  \nAnd ever _\\[ ]_  \noft\n", "ANN:\nAnd ever\noft\n"),
    "escaped dash": ("**ANN**  \n\\--Go,'\\--he said.\n", "ANN:\n--Go,'--he said.\n"),
    "long dash": ("**ANN**  \nGo—stay.\n", "ANN:\nGo--stay.\n"),
    "et cetera": ("**ANN**  \nKing, & c.\n\n**BEN**  \nKing, &amp; c.\n", "ANN:\nKing, &c.\n\nBEN:\nKing, &c.\n"),
    "two speakers": ("**ANN & BEN**  \nAmen.\n", "ANN & BEN:\nAmen.\n"),
    "two speakers with colons": ("**ANN: & BEN:**  \nAmen.\n", "ANN & BEN:\nAmen.\n"),
    "two speakers and others": ("**ANN & BEN & & C**  \nAmen.\n", "ANN & BEN, &C:\nAmen.\n"),
    "fused speakers": (
        "**ANN**  \nHence!  \nSenators, & C We'll surety him.\n",
        "ANN:\nHence!\n\nSenators, &C:\nWe'll surety him.\n",
    ),
    "fused speakers in capitals": (
        "**ANN**  \nCome!  \nALL SERVING-MEN Here, sir.\n",
        "ANN:\nCome!\n\nALL SERVING-MEN:\nHere, sir.\n",
    ),
    "fused servant": ("**ANN**  \nOh.  \nVarro's Servant I fear it.\n", "ANN:\nOh.\n\nVarro's Servant:\nI fear it.\n"),
    "fused with a colon": ("**ANN**  \nOh.  \nCASSIO: Good night.\n", "ANN:\nOh.\n\nCASSIO:\nGood night.\n"),
    "capitals inside a speech": (
        "**ANN**  \nCAIUS MARCIUS CORIOLANUS! Bear\n",
        "ANN:\nCAIUS MARCIUS CORIOLANUS! Bear\n",
    ),
    "speaker broken in two": (
        "**ANN**  \nOh.\n\nGhost\n\n**of KING**  \nAwake!\n",
        "ANN:\nOh.\n\nGhost of KING:\nAwake!\n",
    ),
    "verse taken for a speaker": (
        "**ANN**  \nMay live,\n\n**As long as you or I**  \nyet must die.\n",
        "ANN:\nMay live,\nAs long as you or I yet must die.\n",
    ),
    "scenery after a heading": ("Two Sentinels on guard.\n\n**ANN**  \nStay.\n", "ANN:\nStay.\n"),
    "next scene": (
        "**ANN**  \nGo.\n\n### SCENE II. Rome.\n\nYorkshire.\n\n**ANN**  \nOh.\n",
        "ANN:\nGo.\n\nANN:\nOh.\n",
    ),
    "scene without its mark": ("**ANN**  \nGo.\n\nSCENE II: A room.\n\n**BEN**  \nOh.\n", "ANN:\nGo.\n\nBEN:\nOh.\n"),
    "scene taken for a speaker": (
        "**ANN**  \nGo.\n\n**Scene III**  \nA room.\n\n**BEN**  \nOh.\n",
        "ANN:\nGo.\n\nBEN:\nOh.\n",
    ),
    "title above a heading": (
        "**ANN**  \nGo.\n\n_Exit_\n\nCYMBELINE\n\n### SCENE II.\n\n**BEN**  \nOh.\n",
        "ANN:\nGo.\n\nBEN:\nOh.\n",
    ),
    "song": ("**ANN**  \nSing.  \nSONG.  \nCome away.\n", "ANN:\nSing.\nCome away.\n"),
    "procession": ("**ANN**  \nLook.\n\n_Music_\n\n1\\. A flourish.  \nThen judges.\n\n_They pass_\n", "ANN:\nLook.\n"),
    "prologue without speaker": ("### Prologue\n\nI come no more\n", "Prologue:\nI come no more\n"),
    "prologue with speaker": (
        "### Prologue\n\n_Enter Chorus_\n\n**Chorus**  \nO for a Muse\n",
        "Chorus:\nO for a Muse\n",
    ),
    "epilogue without its mark": (
        "**ANN**  \nGo.\n\nEPILOGUE  \n'Tis ten to one\n",
        "ANN:\nGo.\n\nEPILOGUE:\n'Tis ten to one\n",
    ),
    "epilogue with speaker": ("**ANN**  \nGo.\n\nEPILOGUE\n\n_Enter_\n\n**BEN**  \nOh.\n", "ANN:\nGo.\n\nBEN:\nOh.\n"),
    "speech of directions only": ("**ANN**  \n_\\[Sighs]_\n\n**BEN**  \nOh.\n", "BEN:\nOh.\n"),
    "space before a colon": ("**ANN**  \nGo : now ?\n", "ANN:\nGo: now?\n"),
}


@pytest.mark.parametrize("case", CASES)
def test_small_play(case):
    markdown, text = CASES[case]
    assert play_text(HEAD + markdown) == text


def test_a_correction_is_made_and_must_match_once():
    markdown = HEAD + "**ANN**  \nWho m eets us?\n"
    assert play_text(markdown, [("m eets", "meets")]) == "ANN:\nWho meets us?\n"
    with pytest.raises(ValueError, match="'nobody' must match once, it matches 0 times"):
        play_text(markdown, [("nobody", "somebody")])
    with pytest.raises(ValueError, match="it matches 2 times"):
        play_text(markdown + "\n**ANN**  \nOh.\n", [("ANN", "BEN")])


# --- The real texts ---


@pytest.fixture(scope="module", params=["shakespeare", "shakespeare-complete"])
def real(request):
    return request.param, read_corpus(request.param)


def test_the_text_is_pinned(real):
    name, text = real
    pinned = json.loads((ROOT / "data" / "artifacts.json").read_text(encoding="utf-8"))[name]
    assert hashlib.sha256(text.encode()).hexdigest() == pinned["sha256"]
    assert len(text.encode()) == pinned["bytes"]
    page = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
    assert f"| {len(text):,} | {len(set(text))} | `{pinned['sha256']}` |" in page


def test_the_nine_plays_have_few_characters_and_their_order():
    text = read_corpus()
    assert "".join(sorted(set(text))) == "\n !&',-.:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    assert text.startswith("First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\nSpeak, speak.\n\n")
    assert text.endswith("As you from crimes would pardon'd be,\nLet your indulgence set me free.\n")
    heroes = [
        "MENENIUS",
        "GLOUCESTER",
        "JOHN OF GAUNT",
        "ROMEO",
        "RUTLAND",
        "LEONTES",
        "ISABELLA",
        "PETRUCHIO",
        "PROSPERO",
    ]
    places = [text.index(f"\n{hero}:\n") for hero in heroes]
    assert places == sorted(places)


def test_every_speech_has_a_speaker_and_lines(real):
    for speech in real[1].removesuffix("\n").split("\n\n"):
        speaker, *lines = speech.split("\n")
        assert re.fullmatch(r"[A-Z][A-Za-z',& -]*:", speaker) and lines, speech
        assert all(line and line == " ".join(line.split()) for line in lines), speech


def test_no_direction_and_no_mark_up_is_left(real):
    leftovers = re.findall(r".*[\\_*#\[\]()<>$].*|^(?:Exit|Exeunt|Re-enter|SCENE|ACT|SONG)\b.*|.*& c.*", real[1], re.M)
    assert leftovers == []
    assert [line for line in real[1].split("\n") if re.fullmatch(r"Enter [A-Z]{2,}.*", line)] == []


def test_known_places_of_the_nine_plays():
    text = read_corpus()
    for place in (
        "Hence, old goat!\n\nSenators, &C:\nWe'll surety him.\n\nCOMINIUS:",
        "\n\nVOLUMNIA & VIRGILIA:\nNay,'tis true.\n",
        "And Censorinus,\nnobly named so,\nTwice being by the people chosen\ncensor,\n",
        "You, my good friends,'--this says the belly, mark me,--\n",
        "\n\nGhosts of young Princes:\nDream on thy cousins smother'd in the Tower:\n",
        "\n\nBoy:\nTake, O, take those lips away,\n",
        "Follow me.\nHark what thou else shalt do me.\n",  # two directions were between these lines
    ):
        assert text.count(place) == 1, place


def test_nearly_all_of_the_excerpt_is_in_the_text():
    try:
        excerpt = read_corpus("tinyshakespeare")
    except RuntimeError as error:
        pytest.skip(f"the excerpt cannot be fetched: {str(error).splitlines()[0]}")
    lines = set(read_corpus().split("\n"))
    assert {line.strip() for line in excerpt.split("\n") if " ".join(line.split()) not in lines} == {
        "3 KING HENRY VI",  # a title that the excerpt repeats
        "And",  # words that an editor supplied were cut
        "Twice being",
        "HORTENSIA:",  # slips
        "him like a carbon ado.",
        "Now stops thy spring; my sea sha$l suck them dry,",
        "Tim Richard wear the garland of the realm.",
        "Devised impeachments to imprison him :",
        "But look'd not on the poison of their hearts :",
        "And now, instead of mounting barded steeds",  # other readings
        "I'll rest betide the chamber where thou liest!",
        "But that to your sufficiency, as your Worth is able,",
    }
