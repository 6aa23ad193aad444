"""Train DNN on census income dataset; went through tf_upgrade_v2 once."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import functools
import os
import shutil

from absl import app as absl_app
from absl import flags
import tensorflow as tf

import census_dataset


def define_flags():
  flags.DEFINE_string('data_dir', '/tmp/census_data/', 'Data directory.')
  flags.DEFINE_string('model_dir', '/tmp/census_model', 'Model directory.')
  flags.DEFINE_integer('train_epochs', 4, 'Number of epochs to train.')
  flags.DEFINE_integer('epochs_between_evals', 2, 'Epochs between evaluations.')
  flags.DEFINE_integer('batch_size', 40, 'Batch size.')
  flags.DEFINE_string('export_dir', None, 'Where to export the model.')


def build_estimator(model_dir, columns):
  """Build a wide and deep estimator."""
  wide_columns, deep_columns = columns
  run_config = tf.estimator.RunConfig(
      tf_random_seed=1, log_step_count_steps=5, save_summary_steps=5
  ).replace(
      session_config=tf.compat.v1.ConfigProto(device_count={'GPU': 0},
                                              inter_op_parallelism_threads=1,
                                              intra_op_parallelism_threads=1))
  return tf.compat.v1.estimator.DNNLinearCombinedClassifier(
      model_dir=model_dir,
      linear_feature_columns=wide_columns,
      linear_optimizer=tf.compat.v1.train.FtrlOptimizer(0.05),
      dnn_feature_columns=deep_columns,
      dnn_optimizer=tf.compat.v1.train.AdagradOptimizer(0.05),
      dnn_hidden_units=[16, 8],
      config=run_config,
      loss_reduction=tf.compat.v1.losses.Reduction.SUM)


def export_model(model, export_dir, columns):
  """Export to SavedModel format."""
  wide_columns, deep_columns = columns
  feature_spec = tf.feature_column.make_parse_example_spec(
      wide_columns + deep_columns)
  example_input_fn = (
      tf.estimator.export.build_parsing_serving_input_receiver_fn(feature_spec))
  model.export_saved_model(export_dir, example_input_fn)


def run_loop(flags_obj):
  if os.path.exists(flags_obj.model_dir):
    shutil.rmtree(flags_obj.model_dir, ignore_errors=True)
  train_file, test_file = census_dataset.download(flags_obj.data_dir)
  columns = census_dataset.build_model_columns()
  model = build_estimator(flags_obj.model_dir, columns)

  train_input_fn = functools.partial(
      census_dataset.input_fn, train_file, flags_obj.epochs_between_evals,
      True, flags_obj.batch_size)
  eval_input_fn = functools.partial(
      census_dataset.input_fn, test_file, 1, False, flags_obj.batch_size)

  train_hooks = [tf.estimator.StepCounterHook(every_n_steps=5)]

  for n in range(flags_obj.train_epochs // flags_obj.epochs_between_evals):
    model.train(input_fn=train_input_fn, hooks=train_hooks)
    results = model.evaluate(input_fn=eval_input_fn)
    tf.compat.v1.logging.info('Results at epoch %d / %d',
                              (n + 1) * flags_obj.epochs_between_evals,
                              flags_obj.train_epochs)
    for key in sorted(results):
      tf.compat.v1.logging.info('%s: %s', key, results[key])

  if flags_obj.export_dir:
    export_model(model, flags_obj.export_dir, columns)


def main(_):
  run_loop(flags.FLAGS)


if __name__ == '__main__':
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
  define_flags()
  absl_app.run(main)
