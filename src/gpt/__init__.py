"""The language model of this course, made of parts of `src.core`.

Reading order: tokenizer, data, positions, embedding, attention, rotary, feed_forward, block, output, builder,
model; then loss, trainer, sampling, cache; forms and one_token, for speed alone; at last what the command line is
made of: saved, streaming, settings, training, calibration.
"""

from .attention import GPTAttention
from .block import BareTransformer, GPTTransformer
from .data import CharDataset, TokenDataset
from .embedding import GPTEmbedding
from .feed_forward import GPTFeedForward
from .loss import GPTLoss
from .model import GPT
from .output import GPTOutput
from .positions import LearnedPositions, PositionalEncoding, sinusoidal_positions
from .rotary import RotaryAttention, rotated
from .sampling import generate, probabilities
from .tokenizer import BytePairTokenizer, CharTokenizer, Tokenizer, merge_pair, tokenizer_from_json
from .trainer import GPTTrainer

__all__ = [
    "GPT",
    "BareTransformer",
    "BytePairTokenizer",
    "CharDataset",
    "CharTokenizer",
    "GPTAttention",
    "GPTEmbedding",
    "GPTFeedForward",
    "GPTLoss",
    "GPTOutput",
    "GPTTrainer",
    "GPTTransformer",
    "LearnedPositions",
    "PositionalEncoding",
    "RotaryAttention",
    "TokenDataset",
    "Tokenizer",
    "generate",
    "merge_pair",
    "probabilities",
    "rotated",
    "sinusoidal_positions",
    "tokenizer_from_json",
]
