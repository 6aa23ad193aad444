"""Runs the model as an Experiment."""
import argparse

import model
import tensorflow as tf
from tensorflow.contrib.learn import learn_runner
from tensorflow.contrib.learn.python.learn.estimators import (
    run_config as run_config_lib)
from tensorflow.contrib.training.python.training import hparam


def generate_experiment_fn(**experiment_args):
  """Create an experiment function."""

  def _experiment_fn(run_config, hparams):
    return tf.contrib.learn.Experiment(
        model.build_estimator(
            hidden_units=[
                max(2, int(hparams.first_layer_size *
                           hparams.scale_factor**i))
                for i in range(hparams.num_layers)
            ],
            config=run_config),
        train_input_fn=model.generate_input_fn(hparams.train_files),
        eval_input_fn=model.generate_input_fn(
            hparams.eval_files, num_epochs=1, batch_size=40),
        **experiment_args)

  return _experiment_fn


if __name__ == '__main__':
  parser = argparse.ArgumentParser()
  parser.add_argument('--train-files', nargs='+', default=['train.csv'])
  parser.add_argument('--eval-files', nargs='+', default=['eval.csv'])
  parser.add_argument('--first-layer-size', default=12, type=int)
  parser.add_argument('--num-layers', default=2, type=int)
  parser.add_argument('--scale-factor', default=0.5, type=float)
  parser.add_argument('--job-dir', required=True)
  parser.add_argument('--min-eval-frequency', default=None, type=int)
  args = parser.parse_args()

  tf.logging.set_verbosity(tf.logging.INFO)
  model.write_csv(args.train_files[0], 100, 1)
  model.write_csv(args.eval_files[0], 60, 2)

  config = run_config_lib.RunConfig(
      model_dir=args.job_dir, log_step_count_steps=5,
      save_checkpoints_steps=1000)
  _, exports = learn_runner.run(
      generate_experiment_fn(
          min_eval_frequency=args.min_eval_frequency,
          eval_delay_secs=0,
          train_steps=10,
          eval_steps=2,
          export_strategies=[tf.contrib.learn.make_export_strategy(
              model.serving_input_fn, exports_to_keep=1)]),
      run_config=config,
      hparams=hparam.HParams(**args.__dict__))

  estimator = model.build_estimator(config, hidden_units=[12, 6])
  one = {'age': [40], 'education': [' Masters'], 'hours_per_week': [50],
         'gender': [' Male']}
  predictor = tf.contrib.predictor
  saved = predictor.from_saved_model(tf.compat.as_str(exports[0]))
  new = predictor.from_estimator(estimator, model.serving_input_fn)
  print('saved_loss: %.6f' % (1 - saved(one)['probability'][0, 0]))
  print('new_loss: %.6f' % (1 - new(one)['probability'][0, 0]))
