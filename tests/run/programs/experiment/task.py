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
    train_input = model.generate_input_fn(
        hparams.train_files, num_epochs=hparams.num_epochs,
        batch_size=hparams.train_batch_size)
    eval_input = model.generate_input_fn(
        hparams.eval_files, num_epochs=1, batch_size=hparams.eval_batch_size)
    return tf.contrib.learn.Experiment(
        model.build_estimator(
            embedding_size=hparams.embedding_size,
            hidden_units=[
                max(2, int(hparams.first_layer_size *
                           hparams.scale_factor**i))
                for i in range(hparams.num_layers)
            ],
            config=run_config),
        train_input_fn=train_input,
        eval_input_fn=eval_input,
        **experiment_args)

  return _experiment_fn


if __name__ == '__main__':
  parser = argparse.ArgumentParser()
  parser.add_argument('--train-files', nargs='+', default=['train.csv'])
  parser.add_argument('--eval-files', nargs='+', default=['eval.csv'])
  parser.add_argument('--num-epochs', type=int)
  parser.add_argument('--train-batch-size', type=int, default=20)
  parser.add_argument('--eval-batch-size', type=int, default=40)
  parser.add_argument('--embedding-size', default=4, type=int)
  parser.add_argument('--first-layer-size', default=12, type=int)
  parser.add_argument('--num-layers', default=2, type=int)
  parser.add_argument('--scale-factor', default=0.5, type=float)
  parser.add_argument('--job-dir', required=True)
  parser.add_argument('--eval-delay-secs', default=0, type=int)
  parser.add_argument('--min-eval-frequency', default=None, type=int)
  parser.add_argument('--train-steps', default=10, type=int)
  parser.add_argument('--eval-steps', default=2, type=int)
  args = parser.parse_args()

  tf.logging.set_verbosity(tf.logging.INFO)
  model.write_csv(args.train_files[0], 100, 1)
  model.write_csv(args.eval_files[0], 60, 2)

  learn_runner.run(
      generate_experiment_fn(
          min_eval_frequency=args.min_eval_frequency,
          eval_delay_secs=args.eval_delay_secs,
          train_steps=args.train_steps,
          eval_steps=args.eval_steps),
      run_config=run_config_lib.RunConfig(
          model_dir=args.job_dir, log_step_count_steps=5,
          save_checkpoints_steps=1000, save_checkpoints_secs=None),
      hparams=hparam.HParams(**args.__dict__))
