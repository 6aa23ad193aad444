"""`tf.contrib.seq2seq`: decoders of sequences, their helpers and attention.

Reading order: `tensors`, `helpers` (where a decoder's next input comes from),
`decoders` (one step and the loop), `mechanisms` and `wrapper` (attention), `beams`
(beam search).

Private
attributes have the names of TensorFlow 1.15: classes of programs that derive from these
read them. Monotonic attention, `CustomHelper`, `InferenceHelper` and
`ScheduledOutputTrainingHelper` are not here: a program derives from `Helper`.
"""
