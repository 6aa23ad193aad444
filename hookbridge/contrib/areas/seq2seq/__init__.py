"""`tf.contrib.seq2seq`: decoders of sequences, their helpers and attention.

Reading order: `helpers` (where a decoder's next input comes from), `decoders` (one step
and the loop), `mechanisms` and `wrapper` (attention), `beams` (beam search). Monotonic
attention and `ScheduledOutputTrainingHelper` are not here.
"""

from typing import Any

from hookbridge.contrib.areas.seq2seq.beams import (
    BeamSearchDecoder as BeamSearchDecoder,
)
from hookbridge.contrib.areas.seq2seq.beams import (
    BeamSearchDecoderOutput as BeamSearchDecoderOutput,
)
from hookbridge.contrib.areas.seq2seq.beams import (
    BeamSearchDecoderState as BeamSearchDecoderState,
)
from hookbridge.contrib.areas.seq2seq.beams import (
    FinalBeamSearchDecoderOutput as FinalBeamSearchDecoderOutput,
)
from hookbridge.contrib.areas.seq2seq.beams import gather_tree as gather_tree
from hookbridge.contrib.areas.seq2seq.beams import tile_batch as tile_batch
from hookbridge.contrib.areas.seq2seq.decoders import BasicDecoder as BasicDecoder
from hookbridge.contrib.areas.seq2seq.decoders import (
    BasicDecoderOutput as BasicDecoderOutput,
)
from hookbridge.contrib.areas.seq2seq.decoders import Decoder as Decoder
from hookbridge.contrib.areas.seq2seq.decoders import dynamic_decode as dynamic_decode
from hookbridge.contrib.areas.seq2seq.helpers import CustomHelper as CustomHelper
from hookbridge.contrib.areas.seq2seq.helpers import (
    GreedyEmbeddingHelper as GreedyEmbeddingHelper,
)
from hookbridge.contrib.areas.seq2seq.helpers import Helper as Helper
from hookbridge.contrib.areas.seq2seq.helpers import InferenceHelper as InferenceHelper
from hookbridge.contrib.areas.seq2seq.helpers import (
    SampleEmbeddingHelper as SampleEmbeddingHelper,
)
from hookbridge.contrib.areas.seq2seq.helpers import (
    ScheduledEmbeddingTrainingHelper as ScheduledEmbeddingTrainingHelper,
)
from hookbridge.contrib.areas.seq2seq.helpers import TrainingHelper as TrainingHelper
from hookbridge.contrib.areas.seq2seq.mechanisms import (
    AttentionMechanism as AttentionMechanism,
)
from hookbridge.contrib.areas.seq2seq.mechanisms import (
    BahdanauAttention as BahdanauAttention,
)
from hookbridge.contrib.areas.seq2seq.mechanisms import LuongAttention as LuongAttention
from hookbridge.contrib.areas.seq2seq.mechanisms import hardmax as hardmax
from hookbridge.contrib.areas.seq2seq.wrapper import (
    AttentionWrapperState as AttentionWrapperState,
)


def __getattr__(name: str) -> Any:
    if name == "AttentionWrapper":  # see there
        from hookbridge.contrib.areas.seq2seq import wrapper

        return wrapper.AttentionWrapper
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
